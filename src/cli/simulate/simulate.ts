import { writeWorlds } from '../../changelog/writeWorlds.ts';
import type { AdminConfig } from '../../config.ts';
import { IMPORT_CHUNK, importChunk } from '../../devices/importDevices.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { reachableHost } from '../../readyText.ts';
import { loadSecrets } from '../../secrets.ts';
import { insertAccount, lockForNewTenants, selectAccount } from '../../tenants/accounts.sql.ts';
import { defineCommand, optional, required, unknownAccount } from '../command.ts';
import { parseEmail, parseWhole } from '../optionParsers.ts';
import { paced, type Session } from '../session.ts';
import { drive, type IngestTarget, openIngestClient } from './drive.ts';
import { createFleet, SIMULATED_MAX, simulatedImei } from './simulatedFleet.ts';

const DEFAULT_EMAIL = 'simulation@example.com';
const RATE_MAX = 1_000_000;
/** Times are whole milliseconds and must differ; no tracker sends more often either. */
const RATE_PER_DEVICE_MAX = 100;
const SECONDS_MAX = 31 * 86_400;
const SEED = 1;
const CENTRE = { lat: 41.9, lng: 12.5 };

export const simulate = defineCommand({
  name: 'simulate',
  summary: 'Sends the points of simulated vehicles to the ingest listener of a running service.',
  options: {
    devices: required('N', 'how many vehicles', (text) => parseWhole(text, 1, SIMULATED_MAX)),
    rate: required('POINTS_PER_SECOND', 'of all vehicles together', (text) => parsePositive(text, RATE_MAX)),
    seconds: optional('S', 'for how long; until Ctrl-C when not given', (text) =>
      parsePositive(text, SECONDS_MAX),
    ),
    email: optional('E', `the account that owns them; ${DEFAULT_EMAIL} when not given`, parseEmail),
  },
  notes: [
    'Missing account and devices are created. INGEST_HOST and INGEST_PORT say where the listener is; the token is',
    'the first of INGEST_TOKEN, or that in DATA_DIR. Ctrl-C ends it with the summary so far.',
  ],
  async run(context, { devices, rate, seconds = Number.POSITIVE_INFINITY, email = DEFAULT_EMAIL }) {
    if (rate > devices * RATE_PER_DEVICE_MAX) {
      return fail(
        `--rate is more than ${RATE_PER_DEVICE_MAX} points a second for each device; raise --devices`,
      );
    }
    const { config, say, interrupted, nowMs, withSession } = context;
    const target = await findListener(config);
    if (!target.ok) return target;
    const client = openIngestClient(target.value);
    try {
      const probe = await client.send([]);
      if (probe.kind === 'rejected') return fail(probe.message);
      if (probe.kind === 'unavailable') return fail(`${probe.message}; start the service first: npm start`);
      const imeis = await withSession((session) => registerSimulation(paced(session), email, devices));
      if (!imeis.ok) return imeis;
      say(
        `${devices} vehicles of ${email}, ${rate} points/s; to see them: key:create --email ${email} --scopes all`,
      );
      const fleet = createFleet({ imeis: imeis.value, seed: SEED, startMs: nowMs(), centre: CENTRE });
      return await drive({ fleet, devices, pointsPerSecond: rate, seconds, client, interrupted, nowMs, say });
    } finally {
      client.close();
    }
  },
});

async function findListener(config: AdminConfig): Promise<Result<IngestTarget, string>> {
  if (config.ingestPort === 0) return fail('INGEST_PORT is 0; set it to the port that the service logged');
  const host = reachableHost(config.ingestHost);
  const listener = (token: string) => ok({ host, port: config.ingestPort, token });
  const [token] = config.ingestTokens ?? [];
  if (token !== undefined) return listener(token);
  if (config.databaseUrl !== null) return fail('INGEST_TOKEN must be set to that of the running service');
  const secrets = await loadSecrets(config.dataDir);
  return secrets.ok ? listener(secrets.value.ingestToken) : secrets;
}

function parsePositive(text: string, max: number): Result<number, string> {
  const value = Number(text);
  if (/^[0-9]{1,9}(\.[0-9]{1,6})?$/.test(text) && value > 0 && value <= max) return ok(value);
  return fail(`must be a number above 0, at most ${max}`);
}

/** Makes the account, unless it is there, and those of the first `count` made-up devices that are missing. */
async function registerSimulation(
  session: Session,
  email: string,
  count: number,
): Promise<Result<readonly string[], string>> {
  const imeis = Array.from({ length: count }, (_, index) => simulatedImei(index));
  await ensureAccount(session, email);
  for (let at = 0; at < imeis.length; at += IMPORT_CHUNK) {
    const lines = imeis
      .slice(at, at + IMPORT_CHUNK)
      .map((imei, index) => ({ line: at + index + 1, patch: { imei } }));
    const outcome = await importChunk(session, email, lines);
    if (!outcome.ok) return unknownAccount(email);
    const [rejected] = outcome.value.rejected;
    if (rejected !== undefined) return fail(`${rejected.message}; use the --email of the earlier simulation`);
  }
  return ok(imeis);
}

/** Makes the account that owns simulated vehicles, unless it is there. */
export async function ensureAccount(session: Session, email: string): Promise<void> {
  await writeWorlds(session, async ({ tx, changed }) => {
    await lockForNewTenants(tx);
    if ((await selectAccount(tx, email, 'share')) !== undefined) return;
    const draft = { email, name: 'Simulation', organizationId: null, plan: 'pro', passwordHash: null };
    const { id, worldId } = await insertAccount(tx, draft);
    changed({ kind: 'account', worldId, entityIds: [id] });
  });
}
