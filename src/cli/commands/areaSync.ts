import { IMPORT_LIMITS } from '../../areas/import/importPlan.ts';
import { fail, ok, type Result } from '../../base/result.ts';
import type { AreaWriter } from '../../flows/areas/saveArea.ts';
import { pruneAreas, type SyncReport, syncFeatures } from '../../flows/areas/syncAreas.ts';
import { type Account, selectAccount } from '../../store/access/accounts.ts';
import { readFeatures, UnreadableFile } from '../areas/readFeatures.ts';
import { type CommandOutcome, defineCommand } from '../command.ts';
import type { CommandContext } from '../context.ts';
import { openFile } from '../openFile.ts';
import { flag, operand, required } from '../option.ts';
import { parseEmail } from '../optionParsers.ts';
import { paced, type Session } from '../session.ts';
import { unknownAccount } from '../unknownAccount.ts';

/** A file with more errors than this is not the file that the caller meant. */
const ERRORS_MAX = 100_000;
const PROGRESS_EVERY = 1_000;

export const areaSync = defineCommand({
  name: 'area:sync',
  summary: "Makes an account's areas match a GeoJSON FeatureCollection, by the external_id of each feature.",
  options: {
    email: required('E', 'the address of the account', parseEmail),
    prune: flag('delete the areas with an external_id that the file lacks'),
    dryRun: flag('change nothing, and print what would be done'),
    file: operand('FILE', 'the file; - reads stdin', (text) => (text === '' ? fail('is empty') : ok(text))),
  },
  notes: [
    `The file may have any size. ${IMPORT_LIMITS.features} features are written in one transaction.`,
    'Areas that are as the file says already are not written. A feature with an error costs no other one, and its area',
    'is not pruned. index counts the features from 0. The exit code is 1 when there are errors.',
    'Areas without an external_id are never touched. If the command is interrupted, repeat it: the end is the same.',
  ],
  run: (context, { email, file, prune, dryRun }) =>
    context.withSession(async (session) => {
      const source = file === '-' ? ok(context.stdin) : await openFile(file);
      if (!source.ok) return source;
      const account = await session.sql.begin((tx) => selectAccount(tx, email, 'share'));
      if (account === undefined) return unknownAccount(email);
      const sync = new AreaSync(context, paced(session), writerOf(account), dryRun);
      return sync.run(source.value, prune);
    }),
});

function writerOf({ id, worldId, organizationWorldId }: Account): AreaWriter {
  const worldIds = organizationWorldId === null ? [worldId] : [worldId, organizationWorldId];
  return { accountId: id, worldIds };
}

/** One run of the command: what it has done so far, and which external ids the file has. */
class AreaSync {
  readonly #context: CommandContext;
  readonly #session: Session;
  readonly #writer: AreaWriter;
  readonly #isDryRun: boolean;
  readonly #seen = new Set<string>();
  #features = 0;
  #totals: SyncReport = { created: 0, updated: 0, unchanged: 0, errors: [] };

  constructor(context: CommandContext, session: Session, writer: AreaWriter, isDryRun: boolean) {
    this.#context = context;
    this.#session = session;
    this.#writer = writer;
    this.#isDryRun = isDryRun;
  }

  async run(source: AsyncIterable<Uint8Array>, prune: boolean): Promise<CommandOutcome> {
    const read = await this.#readAll(source);
    if (!read.ok) return fail(`${read.error}${this.#soFar()}`);
    if (this.#features === 0) {
      return fail('the file has no features; it must be a GeoJSON FeatureCollection with at least one');
    }
    const pruned = prune ? await pruneAreas(this.#session, this.#writer, this.#seen, this.#isDryRun) : 0;
    const { errors, ...counts } = this.#totals;
    const outcome = { ...counts, pruned, errors };
    if (errors.length === 0) return ok(outcome);
    await this.#context.print(outcome);
    return fail(
      `${errors.length} errors, each with its reason in the output; the other features are in place`,
    );
  }

  /** Nothing is pruned by a file that was not read to its end: fails then. */
  async #readAll(source: AsyncIterable<Uint8Array>): Promise<Result<null, string>> {
    try {
      for await (const features of readFeatures(source, IMPORT_LIMITS.features)) {
        await this.#sync(features);
        if (this.#context.interrupted.aborted) return fail('interrupted');
        if (this.#totals.errors.length > ERRORS_MAX) return fail(`more than ${ERRORS_MAX} errors`);
      }
      return ok(null);
    } catch (error) {
      if (error instanceof UnreadableFile) {
        return fail(`the file is no JSON, or it ends too soon (${error.message})`);
      }
      throw error;
    }
  }

  async #sync(features: readonly unknown[]): Promise<void> {
    const report = await syncFeatures(this.#session, this.#writer, features, {
      firstIndex: this.#features,
      seen: this.#seen,
      isDryRun: this.#isDryRun,
    });
    const { created, updated, unchanged, errors } = this.#totals;
    this.#totals = {
      created: created + report.created,
      updated: updated + report.updated,
      unchanged: unchanged + report.unchanged,
      errors: [...errors, ...report.errors],
    };
    const before = this.#features;
    this.#features += features.length;
    if (Math.floor(this.#features / PROGRESS_EVERY) > Math.floor(before / PROGRESS_EVERY))
      this.#sayProgress();
  }

  #sayProgress(): void {
    const { created, updated, unchanged, errors } = this.#totals;
    this.#context.say(
      `${this.#features} features: ${created} created, ${updated} updated, ${unchanged} unchanged, ${errors.length} errors`,
    );
  }

  #soFar(): string {
    const { created, updated } = this.#totals;
    if (this.#isDryRun || created + updated === 0) return '; nothing was changed';
    return `; ${created} created and ${updated} updated before that stay. Repeat the command to finish`;
  }
}
