import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { patienceMs } from '../support/patience.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { type Place, type Question, startPostgresProxy } from '../support/postgres/postgresProxy.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { type ServiceProcess, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { LEASE_SECONDS } from '../support/webhooks/deliveryDatabase.ts';
import {
  drained,
  type ProvenEndpoint,
  proveAudit,
  proveDeliveries,
} from '../support/webhooks/deliveryProof.ts';
import type { Receiver } from '../support/webhooks/receiver.ts';
import {
  deliveringEnv,
  endLeases,
  eventIdsOf,
  startAuditedOwner,
  startLast,
} from '../support/webhooks/webhookProcesses.ts';
import { EventSource, endpointBody, postPoints } from '../support/webhooks/webhooks.ts';

const ROUNDS = IS_TORTURE ? 4 : 1;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const IMEI = '350000000000001';
const STUCK_MS = 60_000;
const RULES = [
  { retry_policy: 'exponential', max_retries: 10, budget: 10 },
  { retry_policy: 'fixed', max_retries: 2, budget: 2 },
  { retry_policy: 'none', max_retries: 5, budget: 1 },
] as const;

/** What the killed process has left of a delivery. */
interface Left {
  readonly attempts: number;
  readonly inFlight: boolean;
  readonly isReceived: boolean;
}

/** Whether a question is the one that is waited for, about one of these endpoints. */
type Matches = (question: Question, webhookIds: readonly number[]) => boolean;

/** A moment in the life of a delivery, named as whoever kills the process would. */
interface Moment {
  readonly name: string;
  /** Where the process stands in its talk with Postgres; null: while its receivers keep it waiting. */
  readonly stand: { readonly place: Place; readonly matches: Matches } | null;
  /** How the delivery is found then; null: it does not exist. */
  readonly left: Left | null;
}

/** The claim that leases an endpoint, and the one that also writes how a delivery ended. */
const claims: Matches = ({ text, message }, ids) =>
  text === 'claim_deliveries' &&
  !message.includes('dlv_') &&
  new RegExp(`[{,](?:${ids.join('|')})[,}]`).test(message);
const completes: Matches = ({ text, message }) => text === 'claim_deliveries' && message.includes('dlv_');
const commits: Matches = ({ text, earlier }) => {
  const since = earlier.findLastIndex((each) => each.startsWith('begin'));
  return (
    text === 'commit' && earlier.slice(since).some((each) => each.includes('insert into webhook_delivery'))
  );
};
const UNTOUCHED = { attempts: 0, inFlight: false, isReceived: false };
const COUNTED = { attempts: 1, inFlight: true, isReceived: false };
const RECEIVED = { attempts: 1, inFlight: true, isReceived: true };
const WRITTEN = { attempts: 1, inFlight: false, isReceived: true };

const ALL_MOMENTS: readonly Moment[] = [
  {
    name: 'before the commit of the point',
    stand: { place: 'before', matches: commits },
    left: null,
  },
  {
    name: 'after the commit, before the answer and the wake-up',
    stand: { place: 'after', matches: commits },
    left: UNTOUCHED,
  },
  {
    name: 'before the endpoint is claimed',
    stand: { place: 'before', matches: claims },
    left: UNTOUCHED,
  },
  {
    name: 'after the endpoint was claimed and the attempt counted, before it is sent',
    stand: { place: 'after', matches: claims },
    left: COUNTED,
  },
  { name: 'after the receiver has got the request, before it answers', stand: null, left: RECEIVED },
  {
    name: 'after the answer, before the result is written',
    stand: { place: 'before', matches: completes },
    left: RECEIVED,
  },
  {
    name: 'after the result was written, before the process knows',
    stand: { place: 'after', matches: completes },
    left: WRITTEN,
  },
];

/** In the short form one for each way in which a stored delivery is found in Postgres; what was not committed leaves nothing. */
const SHORT: readonly Left[] = [UNTOUCHED, COUNTED, RECEIVED, WRITTEN];
const MOMENTS = IS_TORTURE
  ? ALL_MOMENTS
  : SHORT.flatMap((left) => ALL_MOMENTS.find((moment) => moment.left === left) ?? []);

type Setup = Awaited<ReturnType<typeof startSetup>>;

async function startSetup(t: TestContext) {
  const { url } = await createDatabase(t);
  const owner = await startAuditedOwner(t, url, [IMEI]);
  const proxy = await startPostgresProxy(t, url);
  const env = await deliveringEnv(t, proxy.url, 1);
  const start = () => startProcess(t, env);
  const source = new EventSource(IMEI, Date.now() - 86_400_000);
  const startLastHeir = () => startLast(t, env);
  return { ...owner, proxy, source, start, startLastHeir, victim: start() };
}

/** The victim is killed at this moment; then another process, the next victim, must bring everything to its end. */
async function killAt(
  setup: Setup,
  moment: Moment,
  prefix: string,
  eventCount: number,
  isLast: boolean,
): Promise<void> {
  const { sql, proxy, receiver, source, victim } = setup;
  assert.equal(victim.child.signalCode, null, 'there is an heir of the moment before');
  const endpoints: (ProvenEndpoint & { id: number })[] = [];
  for (const [n, { budget, ...rule }] of RULES.entries()) {
    const path = `${prefix}/${n}`;
    const { id } = await setup.api.make(endpointBody(receiver.url + path, rule));
    endpoints.push({ path, budget, id });
  }
  const ids = endpoints.map(({ id }) => id);
  const answer = Promise.withResolvers<void>();
  // Of each endpoint the first request is answered when the moment is over; the others are fine.
  const isHeld = moment.stand === null;
  receiver.behave((_, n) => (isHeld && n === 0 ? { status: 200, after: answer.promise } : 200));

  const { ingest } = await victim.listening;
  const { stand } = moment;
  const reached =
    stand === null
      ? allReceived(receiver, endpoints)
      : proxy.hold(stand.place, (question) => stand.matches(question, ids));
  const points = Array.from({ length: eventCount }, () => source.point());
  const before = await eventIdsOf(sql);
  const sent = postPoints(ingest, points).catch(() => null);
  await reached;
  await kill(victim);
  const status = await sent;
  await waitFor(() => isForgotten(setup));
  answer.resolve();

  const stored = (await eventIdsOf(sql)).slice(before.length);
  assert.equal(stored.length, moment.left === null ? 0 : eventCount);
  assert.ok(status === null || (status === 200 && moment.left !== null), 'what was answered is stored');
  await proveLeft(setup, moment, endpoints);

  // Nobody is left to write under its leases; in the long form they run out by themselves.
  if (!IS_TORTURE) await endLeases(sql);
  if (!isLast) setup.victim = setup.start();
  const heir = isLast ? setup.startLastHeir() : setup.victim;
  // As a tracker does that has got no answer.
  assert.equal(await postPoints((await heir.listening).ingest, points), 200);
  await drained(sql, patienceMs(STUCK_MS + LEASE_SECONDS * 1_000));
  const events = (await eventIdsOf(sql)).slice(before.length);
  assert.equal(events.length, eventCount, 'every point is one event, once');
  await proveDeliveries(sql, receiver, endpoints, events);
  await proveAudit(sql);
  for (const { id } of endpoints) await setup.api.call('DELETE', `/${id}`);
}

/** The moment was met: a delivery is as it should be then. Other endpoints may have gone on. */
async function proveLeft({ sql, receiver }: Setup, { left }: Moment, endpoints: readonly { id: number }[]) {
  const deliveries = await sql<{ id: string; attempts: number; inFlight: boolean }[]>`
    select id, attempts, attempt_token is not null as "inFlight" from webhook_delivery
    where webhook_id = any(${endpoints.map(({ id }) => id)}::bigint[])`;
  const received = new Set(receiver.received.map(({ headers }) => headers['x-service-delivery-id']));
  const found = deliveries.map(({ id, attempts, inFlight }): Left => {
    return { attempts, inFlight, isReceived: received.has(id) };
  });
  if (left === null) return assert.deepEqual(found, []);
  const isMet = found.some((each) => isDeepStrictEqual(each, left));
  assert.ok(isMet, `${JSON.stringify(left)} is not among ${JSON.stringify(found)}`);
}

/** Postgres has done what the killed process had asked for, and knows that it is gone. */
async function isForgotten({ sql, proxy }: Setup): Promise<boolean> {
  const sessions = await sql`
    select from pg_stat_activity where client_port = any(${[...proxy.sessionPorts]}::int[])`;
  return sessions.length === 0;
}

const allReceived = async (receiver: Receiver, endpoints: readonly ProvenEndpoint[]): Promise<void> => {
  while (!endpoints.every(({ path }) => receiver.to(path).length === 1)) await sleep(5);
};

async function kill({ child, ended }: ServiceProcess): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

test('a process is killed at a chosen moment: every event is delivered or a dead letter', async (t) => {
  const random = seededRandom(SEED);
  const setup = await startSetup(t);
  for (const [m, moment] of MOMENTS.entries()) {
    await t.test(`${moment.name} (seed ${SEED})`, async () => {
      for (let round = 0; round < ROUNDS; round++)
        await killAt(
          setup,
          moment,
          `/${m}/${round}`,
          1 + Math.floor(random() * 4),
          m === MOMENTS.length - 1 && round === ROUNDS - 1,
        );
    });
  }
});
