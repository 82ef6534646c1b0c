import { Readable } from 'node:stream';
import type { AreaSize } from '../../areas/areas.sql.ts';
import { DatabaseTarget } from '../../areas/import/databaseTarget.ts';
import { IMPORT_LIMITS, type ImportError } from '../../areas/import/importPlan.ts';
import type { FileFeature, SyncTarget } from '../../areas/import/syncAreas.ts';
import { syncFeatures, withoutRepeated } from '../../areas/import/syncAreas.ts';
import { grown } from '../../areas/saveArea.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { selectAccount } from '../../tenants/accounts.sql.ts';
import type { CommandContext, CommandOutcome } from '../command.ts';
import { defineCommand, flag, optional, unknownAccount } from '../command.ts';
import { FILE, openFile } from '../input.ts';
import { parseEmail, parseKey, parseUrl } from '../optionParsers.ts';
import { ApiClient, ApiFailure } from '../remote/apiClient.ts';
import { RemoteTarget } from '../remote/remoteTarget.ts';
import { paced } from '../session.ts';

/** A file with more errors than this is not the file that the caller meant. */
const ERRORS_MAX = 100_000;
const PROGRESS_EVERY = 1_000;
/** External ids that are remembered, fifty times as many as a plan allows areas: some 100 MB. */
const EXTERNAL_IDS_MAX = 1_000_000;
/** Features that are kept until areas are pruned to make room for them. An account could not have more either. */
const POSTPONED_MAX = { features: 20_000, chars: 256 * 1024 * 1024 };

export const areaSync = defineCommand({
  name: 'area:sync',
  summary: "Makes an account's areas match a GeoJSON FeatureCollection, by the external_id of each feature.",
  options: {
    email: optional('E', 'the address of the account; not with --url', parseEmail),
    url: optional('U', 'the address of a running service, such as https://fleet.example.com', parseUrl),
    key: optional('K', 'with --url: an API key with read_areas and write_areas', parseKey),
    organization: flag("share all areas of the file with the account's organization"),
    prune: flag('delete the areas with an external_id that the file lacks'),
    dryRun: flag('change nothing, and print what would be done'),
    file: FILE,
  },
  notes: [
    `The file may have any size. ${IMPORT_LIMITS.features} features are written in one transaction.`,
    'Areas that are as the file says already are not written. A feature with an error costs no other one, and its area',
    'is not pruned. index counts the features from 0. The exit code is 1 when there are errors.',
    'Of several features with one external_id the first counts, and each of the others is an error. Areas are pruned after',
    'the others are written; what the plan of the account has no room for before that is written after it.',
    'Areas without an external_id are never touched. If the command is interrupted, repeat it: the end is the same.',
    'With --url and --key it runs through any pod of a service and needs no database. It takes two calls for each 200 areas',
    'that the key sees, one for each 200 that are written, and one for each that is pruned, and waits where the limits of',
    'the key are reached.',
  ],
  async run(context, { email, url, key, organization, file, prune, dryRun }) {
    if (url === undefined) {
      if (key !== undefined) return fail('--key is for --url; give both, or --email alone');
      if (email === undefined)
        return fail('--email is missing; or give --url and --key of a running service');
    } else {
      if (key === undefined)
        return fail('--key is missing: a key of the account, which reads and writes areas');
      if (email !== undefined)
        return fail('--email and --url exclude each other: the key says whose areas these are');
      if (organization) return fail('--organization needs the database: give --email in place of --url');
    }
    const source = await openFile(file, context.stdin);
    if (!source.ok) return source;
    const sync = new AreaSync(context, dryRun, prune);
    if (url !== undefined && key !== undefined) {
      const client = new ApiClient({ url, key, say: context.say, interrupted: context.interrupted });
      return sync.run(source.value, () => RemoteTarget.open(client, context.say));
    }
    return context.withSession(async (session) => {
      const account = await session.sql.begin((tx) => selectAccount(tx, email ?? '', 'share'));
      if (account === undefined) return unknownAccount(email ?? '');
      const { id: accountId, worldId, organizationWorldId: sharedId } = account;
      if (organization && sharedId === null)
        return fail(`${email} belongs to no organization; give it one with account:update --organization`);
      const writer = { accountId, worldIds: sharedId === null ? [worldId] : [worldId, sharedId] };
      const target = new DatabaseTarget(paced(session), writer, organization ? sharedId : null);
      return sync.run(source.value, async () => target);
    });
  },
});

/** One run of the command: what it has done so far, and which external ids the file has. */
class AreaSync {
  readonly #context: CommandContext;
  readonly #isDryRun: boolean;
  readonly #prunes: boolean;
  /** The index of the first feature of each external id. */
  readonly #seen = new Map<string, number>();
  /** Features that did not fit into the account's limits, as JSON. */
  readonly #postponed: { readonly index: number; readonly json: string; readonly error: ImportError }[] = [];
  #postponedChars = 0;
  #features = 0;
  #created = 0;
  #updated = 0;
  #unchanged = 0;
  #pruned = 0;
  readonly #errors: ImportError[] = [];
  /** By how much the account would have grown in a dry run. */
  #growth: AreaSize = { areas: 0, vertices: 0 };

  constructor(context: CommandContext, isDryRun: boolean, prunes: boolean) {
    this.#context = context;
    this.#isDryRun = isDryRun;
    this.#prunes = prunes;
  }

  async run(source: AsyncIterable<Uint8Array>, open: () => Promise<SyncTarget>): Promise<CommandOutcome> {
    try {
      return await this.#run(source, await open());
    } catch (error) {
      if (error instanceof ApiFailure) return fail(`${error.message}${this.#soFar(error.mayHaveHappened)}`);
      throw error;
    }
  }

  async #run(source: AsyncIterable<Uint8Array>, target: SyncTarget): Promise<CommandOutcome> {
    const read = await this.#readAll(source, target);
    if (!read.ok) return fail(`${read.error}${this.#soFar()}`);
    if (this.#features === 0) {
      return fail('the file has no features; it must be a GeoJSON FeatureCollection with at least one');
    }
    if (this.#prunes) await this.#prune(target);
    const synced = await this.#syncPostponed(target);
    if (!synced.ok) return fail(`${synced.error}${this.#soFar()}`);
    const counts = { created: this.#created, updated: this.#updated, unchanged: this.#unchanged };
    const errors = this.#errors.toSorted((a, b) => a.index - b.index);
    const outcome = { ...counts, pruned: this.#pruned, errors };
    if (errors.length === 0) return ok(outcome);
    await this.#context.print(outcome);
    return fail(
      `${errors.length} errors, each with its reason in the output; the other features are in place`,
    );
  }

  /** Nothing is pruned by a file that was not read to its end: fails then. */
  async #readAll(source: AsyncIterable<Uint8Array>, target: SyncTarget): Promise<Result<null, string>> {
    try {
      for await (const features of readFeatures(source, IMPORT_LIMITS.features)) {
        const numbered = features.map((feature, n) => ({ index: this.#features + n, feature }));
        const { fresh, errors } = withoutRepeated(numbered, this.#seen);
        this.#errors.push(...errors);
        await this.#sync(target, fresh, this.#prunes);
        this.#features += features.length;
        if (this.#features % PROGRESS_EVERY === 0) this.#sayProgress();
        if (this.#context.interrupted.aborted) return fail('interrupted');
        if (this.#errors.length > ERRORS_MAX) return fail(`more than ${ERRORS_MAX} errors`);
        if (this.#seen.size > EXTERNAL_IDS_MAX) return fail(`more than ${EXTERNAL_IDS_MAX} external ids`);
      }
      return ok(null);
    } catch (error) {
      if (error instanceof UnreadableFile) {
        return fail(`the file is not JSON, or it ends too soon (${error.message})`);
      }
      throw error;
    }
  }

  /** With `canPostpone`, a feature beyond the account's limits is kept for later instead of being an error. */
  async #sync(target: SyncTarget, features: readonly FileFeature[], canPostpone: boolean): Promise<void> {
    const growth = this.#isDryRun ? this.#growth : null;
    const report = await syncFeatures(target, features, growth);
    this.#created += report.created;
    this.#updated += report.updated;
    this.#unchanged += report.unchanged;
    this.#growth = grown(this.#growth, report.growth);
    const featureAt = new Map(features.map(({ index, feature }) => [index, feature]));
    for (const error of report.errors) {
      const isPostponed =
        canPostpone &&
        error.code === 'LIMIT_REACHED' &&
        this.#postpone(error, JSON.stringify(featureAt.get(error.index)));
      if (!isPostponed) this.#errors.push(error);
    }
  }

  #postpone(error: ImportError, json: string): boolean {
    const chars = this.#postponedChars + json.length;
    if (this.#postponed.length >= POSTPONED_MAX.features || chars > POSTPONED_MAX.chars) return false;
    this.#postponed.push({ index: error.index, json, error });
    this.#postponedChars = chars;
    return true;
  }

  async #prune(target: SyncTarget): Promise<void> {
    const { ids, size } = await target.surplus((id) => this.#seen.has(id));
    if (this.#isDryRun) {
      this.#pruned = ids.length;
      const { areas, vertices } = this.#growth;
      this.#growth = { areas: areas - size.areas, vertices: vertices - size.vertices };
    } else {
      for await (const count of target.prune(ids)) {
        const before = this.#pruned;
        this.#pruned += count;
        if (Math.floor(before / PROGRESS_EVERY) < Math.floor(this.#pruned / PROGRESS_EVERY))
          this.#context.say(`${this.#pruned} of ${ids.length} pruned`);
      }
    }
  }

  async #syncPostponed(target: SyncTarget): Promise<Result<null, string>> {
    if (this.#pruned === 0) {
      for (const { error } of this.#postponed) this.#errors.push(error);
      return ok(null);
    }
    for (let at = 0; at < this.#postponed.length; at += IMPORT_LIMITS.features) {
      if (this.#context.interrupted.aborted) return fail('interrupted');
      const some = this.#postponed.slice(at, at + IMPORT_LIMITS.features);
      await this.#sync(
        target,
        some.map(({ index, json }) => ({ index, feature: JSON.parse(json) as unknown })),
        false,
      );
    }
    return ok(null);
  }

  #sayProgress(): void {
    this.#context.say(
      `${this.#features} features: ${this.#created} created, ${this.#updated} updated, ${this.#unchanged} unchanged, ${this.#errors.length} errors`,
    );
  }

  /** `isUnknown`: a call that writes was made, and it is unknown whether it was carried out. */
  #soFar(isUnknown = false): string {
    const isPruned = this.#pruned > 0;
    const isUntouched = this.#created + this.#updated === 0 && !isPruned && !isUnknown;
    if (this.#isDryRun || isUntouched) return '; nothing was changed';
    const done = `${this.#created} created${isPruned ? ',' : ' and'} ${this.#updated} updated`;
    const also = isPruned ? ` and ${this.#pruned} pruned` : '';
    return `; ${done}${also} before that stay. Repeat the command to finish`;
  }
}

/** The text of a file is not JSON, or ends too soon. */
class UnreadableFile extends Error {
  override name = 'UnreadableFile';
}

/**
 * The features of a GeoJSON FeatureCollection, some at a time: a file may be larger than memory. Throws UnreadableFile.
 * A document without `features` has none.
 */
async function* readFeatures(
  source: AsyncIterable<Uint8Array>,
  atATime: number,
): AsyncGenerator<readonly unknown[], void> {
  // Loaded only here: other commands need not wait for it.
  const { parser } = await import('stream-json');
  const { pick } = await import('stream-json/filters/pick.js');
  const { streamArray } = await import('stream-json/streamers/stream-array.js');
  const tokens = Readable.from(source, { objectMode: false }).compose(parser.asStream());
  const features = tokens.compose(pick.asStream({ filter: 'features' })).compose(streamArray.asStream());
  let some: unknown[] = [];
  try {
    for await (const { value } of features) {
      some.push(value);
      if (some.length < atATime) continue;
      yield some;
      some = [];
    }
  } catch (error) {
    throw new UnreadableFile(error instanceof Error ? error.message : String(error), { cause: error });
  }
  if (some.length > 0) yield some;
}
