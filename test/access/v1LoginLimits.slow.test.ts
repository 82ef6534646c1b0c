import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { EventCuts } from '../../src/events/eventPartitions.sql.ts';
import { tidy } from '../../src/housekeeping.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { chargeLogin, LOGIN_LIMITS, loginSubjects } from '../../src/tenants/logins.sql.ts';
import {
  BEHIND_PROXY,
  faceOf,
  makeOwner,
  outcomeOf,
  PASSWORD,
  tryLogIn,
} from '../support/http/application.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const { perAddress, perPair, perAccount } = LOGIN_LIMITS;
const OWNER = 'owner@example.com';
const COLLEAGUE = 'colleague@example.com';
const HOME = '192.0.2.1';
const LIMITED = '429 TOO_MANY_REQUESTS';
const WRONG = '403 FORBIDDEN';

let pods: readonly [Pod, Pod];
let sql: Sql;

before(async () => {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  sql = openSql(url, { maxConnections: 4, name: 'test' });
  for (const email of [OWNER, COLLEAGUE]) await makeOwner(admin, email);
  // Without Redis: what is counted for logins is counted in Postgres, for all pods together.
  const env = { ...NO_LIMITS, ...BEHIND_PROXY };
  pods = [await startPod(url, { env }), await startPod(url, { env })];
});
after(async () => {
  await Promise.all(pods.map((pod) => pod.stop()));
  await sql.end();
});
beforeEach(async () => {
  await sql`delete from login_window`;
  await sql`delete from login_address`;
});

let calls = 0;
/** On either pod in turn. */
const attempt = async (email: string, password: string, ip: string): Promise<string> =>
  outcomeOf(await tryLogIn(pods[calls++ % 2] as Pod, email, password, ip));

const atHome = (): string => HOME;
const elsewhere = (n: number): string => `198.51.100.${n}`;

/**
 * So many wrong guesses, one after the other; their outcomes, each with its count. The first and the last go to a pod; the
 * others are counted by what a pod counts them with, which costs less than a call.
 */
async function guess(count: number, ip: (n: number) => string, email = (_: number): string => OWNER) {
  const outcomes: Record<string, number> = {};
  for (let n = 0; n < count; n++) {
    const isCall = n === 0 || n === count - 1;
    const outcome = isCall ? await attempt(email(n), `guess ${n}`, ip(n)) : await countGuess(email(n), ip(n));
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  return outcomes;
}

const countGuess = async (email: string, ip: string): Promise<string> => {
  const charged = await sql.begin((tx) => chargeLogin(tx, loginSubjects(email, ip)));
  return charged === null ? LIMITED : WRONG;
};

const passTime = (minutes: number) =>
  sql`update login_window set started_at = started_at - make_interval(mins => ${minutes})`;

describe('guessing a password ends', () => {
  test('for an account from one address, also for the right password then, and not for others', async () => {
    const outcomes = await guess(perPair + 3, atHome);
    assert.deepEqual(outcomes, { [WRONG]: perPair, [LIMITED]: 3 });
    assert.equal(await attempt(OWNER, PASSWORD, HOME), LIMITED);
    assert.equal(await attempt(COLLEAGUE, PASSWORD, HOME), '201');
    assert.equal(await attempt(OWNER, PASSWORD, '192.0.2.2'), '201');
  });

  test('without using up the other limits by what is refused', async () => {
    await guess(perPair + perAddress, atHome);
    assert.equal(await attempt(COLLEAGUE, 'wrong', HOME), WRONG);
    const fromElsewhere = await guess(perAccount - perPair, elsewhere);
    assert.deepEqual(fromElsewhere, { [WRONG]: perAccount - perPair });
  });

  test('for many accounts from one address', async () => {
    const outcomes = await guess(perAddress + 2, atHome, (n) => (n % 2 === 0 ? OWNER : COLLEAGUE));
    assert.deepEqual(outcomes, { [WRONG]: perAddress, [LIMITED]: 2 });
    assert.equal(await attempt(COLLEAGUE, PASSWORD, '192.0.2.2'), '201');
  });

  test('for an account from many addresses', async () => {
    const outcomes = await guess(perAccount + 2, elsewhere);
    assert.deepEqual(outcomes, { [WRONG]: perAccount, [LIMITED]: 2 });
    assert.equal(await attempt(COLLEAGUE, PASSWORD, '198.51.100.1'), '201');
  });

  test('as soon when all guesses come at once on two pods', async () => {
    const all = Array.from({ length: 3 * perPair }, (_, n) => attempt(OWNER, `guess ${n}`, HOME));
    const outcomes = await Promise.all(all);
    assert.equal(outcomes.filter((outcome) => outcome === WRONG).length, perPair);
    assert.equal(outcomes.filter((outcome) => outcome === LIMITED).length, 2 * perPair);
  });
});

describe('an owner logs in', () => {
  test('from an address that is known, whatever others guess from elsewhere', async () => {
    assert.equal(await attempt(OWNER, PASSWORD, HOME), '201');
    await guess(perAccount + 2, elsewhere);
    assert.equal(await attempt(OWNER, PASSWORD, '192.0.2.77'), LIMITED, 'from an address that is not known');
    for (let n = 0; n < 3; n++) assert.equal(await attempt(OWNER, PASSWORD, HOME), '201');
  });

  test('after guesses from a known address, which count for that address and not against the account', async () => {
    assert.equal(await attempt(OWNER, PASSWORD, HOME), '201');
    const outcomes = await guess(perPair + 1, atHome);
    assert.deepEqual(outcomes, { [WRONG]: perPair, [LIMITED]: 1 });
    const fromElsewhere = await guess(perAccount, elsewhere);
    assert.deepEqual(fromElsewhere, { [WRONG]: perAccount });
  });

  test('after a quarter of an hour, which guesses meanwhile do not lengthen', async () => {
    const wait = LOGIN_LIMITS.windowMinutes;
    await guess(perPair - 1, atHome);
    await passTime(wait - 1);
    assert.equal(await attempt(OWNER, 'wrong', HOME), WRONG, 'the last one');
    assert.equal(await attempt(OWNER, PASSWORD, HOME), LIMITED);
    await passTime(1);
    assert.equal(await attempt(OWNER, PASSWORD, HOME), '201');
    assert.equal(await attempt(OWNER, 'wrong', HOME), WRONG, 'the window began anew');
  });

  test('without giving guesses at another account back', async () => {
    for (let n = 0; n < perAddress; n++) {
      assert.equal(await attempt(OWNER, 'wrong', n < perPair ? HOME : '192.0.2.2'), WRONG);
      assert.equal(await attempt(COLLEAGUE, PASSWORD, HOME), '201');
    }
    assert.equal(await attempt(OWNER, 'wrong', HOME), LIMITED);
  });
});

describe('a refused login does not show', () => {
  test('whether there is such an account, at any attempt', async () => {
    for (const expected of [WRONG, LIMITED]) {
      const [known, unknown] = await Promise.all([
        tryLogIn(pods[0], OWNER, 'wrong', HOME),
        tryLogIn(pods[0], 'nobody@example.com', 'wrong', '192.0.2.2'),
      ]);
      assert.equal(outcomeOf(known), expected);
      assert.deepEqual(faceOf(unknown), faceOf(known));
      // All others of both are counted, without what their checks cost.
      await sql`update login_window set attempts = attempts + ${perPair - 1}`;
    }
  });

  test('which limit it was, nor times or counts', async () => {
    await guess(perPair, atHome);
    const byPair = await tryLogIn(pods[0], OWNER, 'x', HOME);
    await guess(perAddress - perPair, atHome, () => COLLEAGUE);
    const byAddress = await tryLogIn(pods[0], 'third@example.com', 'x', HOME);
    await guess(perAccount - perPair, elsewhere);
    const byAccount = await tryLogIn(pods[0], OWNER, 'x', '203.0.113.1');
    for (const reply of [byPair, byAddress, byAccount]) {
      assert.equal(outcomeOf(reply), LIMITED);
      assert.deepEqual(faceOf(reply), faceOf(byPair));
      assert.doesNotMatch([...reply.headers.keys()].join(' '), /ratelimit|retry-after/);
      assert.doesNotMatch(reply.text, /\d|account|address/i);
    }
  });

  test('what was typed in what is stored of it', async () => {
    await countGuess('My.Password@example.com', HOME);
    await attempt(OWNER, PASSWORD, HOME);
    const rows = await sql<{ text: string }[]>`
      select login_window::text as text from login_window union all select login_address::text from login_address`;
    assert.ok(rows.length > 3);
    for (const { text } of rows) assert.doesNotMatch(text, /password|example|192\.0\.2/i);
  });
});

test('housekeeping removes login windows that are over and addresses of long ago, and no others', async () => {
  await attempt(OWNER, PASSWORD, HOME);
  await attempt(COLLEAGUE, PASSWORD, HOME);
  await passTime(LOGIN_LIMITS.windowMinutes + 1);
  await countGuess('nobody@example.com', '192.0.2.9');
  await sql`
    update login_address set seen_at = seen_at - interval '91 days'
    where account_id = (select id from account where email = ${OWNER})`;
  await tidy({
    sql,
    clock: Date.now,
    eventRetentionDays: 730,
    eventCuts: new EventCuts(),
    log: { info: () => undefined, warn: () => assert.fail('it failed') },
  });
  assert.equal((await sql`select 1 from login_window`).length, 3);
  assert.equal((await sql`select 1 from login_address`).length, 1);
});

test('an account is known at fifty addresses at most: the oldest is forgotten first', async () => {
  await sql`
    insert into login_address (pair, account_id, seen_at)
    select sha256(n::text::bytea), id, now() - make_interval(hours => n)
    from account, generate_series(1, 50) n where email = ${OWNER}`;
  await attempt(OWNER, PASSWORD, HOME);
  const [row] = await sql<{ count: number; oldest: Date }[]>`
    select count(*)::int as count, min(seen_at) as oldest from login_address`;
  assert.equal(row?.count, 50);
  assert.ok(row.oldest.getTime() > Date.now() - 49.5 * 3_600_000);
});
