import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AccessDecision, Authorizer, Keyring } from '../../src/access/authorizer.ts';
import type { KeyState } from '../../src/access/credentials.ts';
import { fingerprint, readKey } from '../../src/access/credentials.ts';
import {
  CidrSet,
  clientAddress,
  type IpAddress,
  parseAllowlist,
  parseIpAddress,
} from '../../src/access/ipAddress.ts';
import { scopeMask } from '../../src/access/scopes.ts';
import { AppliedTransactions } from '../../src/changelog/appliedTransactions.memory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { DeadlineExceeded, MINUTE_MS } from '../../src/lib/time.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { Statement } from '../../src/postgres/sqlText.ts';
import {
  type LimitRequest,
  type LimitVerdict,
  LocalRateLimiter,
  type RateLimiter,
} from '../../src/redis/rateLimiter.ts';

const NOW_MS = 1_700_000_000_000;
const KEY = `fk_${'k'.repeat(43)}`;
const OTHER_KEY = `fk_${'o'.repeat(43)}`;
const FINE: KeyState = {
  id: 7,
  accountId: 3,
  worldIds: [11, 12],
  scopes: scopeMask('read_devices'),
  allowlist: allow(),
  revoked: false,
  ownerActive: true,
  historyDays: 30,
};

function allow(...entries: string[]) {
  const parsed = parseAllowlist(entries);
  assert.ok(parsed.ok);
  return parsed.value;
}

function address(text: string): IpAddress {
  const parsed = parseIpAddress(text);
  assert.ok(parsed);
  return parsed;
}

/** Postgres as far as the authorizer asks it: one key, or its loss. */
interface Store {
  row: Record<string, unknown> | undefined;
  isLost: boolean;
  reads: number;
  /** Happens between a read and the arrival of what it read. */
  onRead: () => void;
}

const rowOf = (key: KeyState): Record<string, unknown> => ({
  id: key.id,
  account_id: key.accountId,
  account_world: key.worldIds[0],
  organization_world: key.worldIds[1] ?? null,
  scopes: ['read_devices'],
  allowlist: [],
  groups: [],
  revoked: key.revoked,
  expires_at: null,
  active: key.ownerActive,
  history_days: key.historyDays,
});

interface Desk {
  authorize(apiKey: string | undefined, nowMs?: number, ip?: string): Promise<string>;
  readonly store: Store;
  readonly keyring: Keyring;
  readonly fleet: Fleet;
  /** What the feed will bring, and whether it can be read at all. */
  readonly feed: {
    lagMs: number;
    isUnresponsive: boolean;
    catchUps: number;
    onCatchUp: () => void | Promise<void>;
  };
  readonly restored: string[];
  /** What it knows when it is asked patiently, and how often it was. */
  readonly redis: { worldId: number; version: number; asked: number };
}

/** An authorizer with a key in memory, a rate limiter, and a Postgres that answers as the test says. */
function open(rateLimiter: RateLimiter, key: KeyState | null = FINE): Desk {
  const keyring = new Keyring();
  if (key !== null) keyring.put(fingerprint(KEY), key, keyring.epoch);
  const fleet = new Fleet();
  const store: Store = { row: undefined, isLost: false, reads: 0, onRead: () => undefined };
  const restored: string[] = [];
  const redis = { worldId: 0, version: 0, asked: 0 };
  const feed = {
    lagMs: 0,
    isUnresponsive: false,
    catchUps: 0,
    onCatchUp: (): void | Promise<void> => undefined,
  };
  const read = async () => {
    store.reads++;
    if (store.isLost) throw new DeadlineExceeded('lost');
    const { row } = store;
    store.onRead();
    const rows = row === undefined ? [] : [row];
    return Object.assign(rows, { count: rows.length });
  };
  const sql = (strings: TemplateStringsArray, ...values: unknown[]) =>
    new Statement(read, { strings, values });
  const authorizer = new Authorizer({
    sql: sql as unknown as Sql,
    fleet,
    keyring,
    rateLimiter,
    follower: {
      applied: appliedAgo(() => feed.lagMs),
      get isUnresponsive() {
        return feed.isUnresponsive;
      },
      catchUp: async () => {
        feed.catchUps++;
        await feed.onCatchUp();
      },
    },
    versions: {
      restore: async (worldId, version, ticket) => restored.push(`${worldId} ${version} ${ticket}`) > 0,
      knowsNewer: async (worldIds, versions) => {
        redis.asked++;
        return worldIds.some((worldId, n) => redis.worldId === worldId && redis.version > (versions[n] ?? 0));
      },
    },
    keyUse: { note: () => undefined },
  });
  return {
    authorize: async (apiKey, nowMs = NOW_MS, ip = '192.0.2.1') => {
      const client = clientAddress(ip, undefined, new CidrSet([]));
      return describeDecision(await authorizer.authorize(readKey(apiKey), client, nowMs));
    },
    store,
    keyring,
    fleet,
    feed,
    restored,
    redis,
  };
}

function describeDecision(decision: AccessDecision): string {
  switch (decision.kind) {
    case 'granted':
      return `authorized ${decision.caller.id}`;
    case 'denied':
      return [decision.code, ...(decision.endedAtMs === undefined ? [] : [decision.endedAtMs])].join(' ');
    case 'limited':
      return decision.limit;
  }
}

const lost = (): never => {
  throw new DeadlineExceeded('Postgres is lost');
};

/** Memory that held everything so many milliseconds ago. */
function appliedAgo(lagMs: () => number): AppliedTransactions {
  const applied = new AppliedTransactions(lagMs);
  applied.heldAtMs = 0;
  applied.writesAtMs = 0;
  return applied;
}

describe('limits', () => {
  const limits = { ipMinute: 120, keyMinute: 120, keyHour: 1000 };

  async function times(count: number, call: () => Promise<string>): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (let n = 0; n < count; n++) {
      const answer = await call();
      counts[answer] = (counts[answer] ?? 0) + 1;
    }
    return counts;
  }

  test('120 calls of an address in a minute, whatever became of them', async () => {
    const { authorize, store } = open(
      new LocalRateLimiter({ limits: { ...limits, keyMinute: 0, keyHour: 0 } }),
    );
    const keys = [undefined, '', 'no key at all', KEY, OTHER_KEY];
    let n = 0;
    const counts = await times(200, () => authorize(keys[n++ % keys.length]));
    assert.equal(counts['ip_minute'], 80);
    assert.equal(store.reads, 24, 'an address over its limit costs Postgres nothing');
    assert.equal(await authorize(KEY, NOW_MS, '192.0.2.2'), 'authorized 7');
    assert.equal(await authorize(KEY, NOW_MS + MINUTE_MS), 'authorized 7');
  });

  test('a call refused for its key costs its address nothing', async () => {
    const { authorize, store } = open(new LocalRateLimiter({ limits: { ...limits, keyMinute: 5 } }));
    assert.deepEqual(await times(300, () => authorize(KEY)), { 'authorized 7': 5, key_minute: 295 });
    // 115 are left for keys that no limit refuses: known or not, first seen or not.
    store.row = { ...rowOf(FINE), id: 8 };
    assert.deepEqual(await times(200, () => authorize(OTHER_KEY)), { 'authorized 8': 5, key_minute: 195 });
    assert.deepEqual(await times(200, () => authorize(undefined)), { API_KEY_REQUIRED: 110, ip_minute: 90 });
  });

  test('a call refused for its address or by judgement costs its key nothing', async () => {
    const { authorize, keyring } = open(
      new LocalRateLimiter({ limits: { ...limits, ipMinute: 10, keyMinute: 3 } }),
    );
    keyring.put(fingerprint(OTHER_KEY), { ...FINE, revoked: true }, keyring.epoch);
    assert.deepEqual(await times(5, () => authorize(OTHER_KEY)), { API_KEY_REVOKED: 5 });
    assert.deepEqual(await times(5, () => authorize(undefined)), { API_KEY_REQUIRED: 5 });
    assert.deepEqual(await times(5, () => authorize(KEY)), { ip_minute: 5 });
    assert.deepEqual(await times(5, () => authorize(KEY, NOW_MS, '192.0.2.9')), {
      'authorized 7': 3,
      key_minute: 2,
    });
  });
});

const OPEN: RateLimiter = { check: () => ({ kind: 'pass' }) };

describe('judgement', () => {
  test('a key is as if revoked from the moment at which it ends', async () => {
    const { authorize } = open(new LocalRateLimiter({ limits: { ipMinute: 0, keyMinute: 2, keyHour: 0 } }), {
      ...FINE,
      endsAtMs: NOW_MS,
    });
    const times = [-2, -1, 0, 1, MINUTE_MS].map((afterMs) => authorize(KEY, NOW_MS + afterMs));
    assert.deepEqual(await Promise.all(times), [
      ...['authorized 7', 'authorized 7'],
      ...[`API_KEY_REVOKED ${NOW_MS}`, `API_KEY_REVOKED ${NOW_MS}`, `API_KEY_REVOKED ${NOW_MS}`],
    ]);
    const revoked = open(OPEN, { ...FINE, revoked: true, endsAtMs: NOW_MS });
    assert.equal(await revoked.authorize(KEY, NOW_MS + 1), 'API_KEY_REVOKED', 'it did not end by itself');
    const unread = open(OPEN, null);
    unread.store.row = { ...rowOf(FINE), expires_at: new Date(NOW_MS) };
    assert.equal(await unread.authorize(KEY, NOW_MS - 1), 'authorized 7');
    assert.equal(await unread.authorize(KEY), `API_KEY_REVOKED ${NOW_MS}`);
  });

  test('an address that is not certain opens no allowlist', async () => {
    const keyring = new Keyring();
    keyring.put(fingerprint(KEY), { ...FINE, allowlist: allow('192.0.2.1') }, keyring.epoch);
    const authorizer = new Authorizer({
      sql: (() => assert.fail()) as unknown as Sql,
      fleet: new Fleet(),
      keyring,
      rateLimiter: OPEN,
      follower: {
        applied: appliedAgo(() => 0),
        isUnresponsive: false,
        catchUp: () => assert.fail(),
      },
      versions: { restore: () => assert.fail(), knowsNewer: () => assert.fail() },
      keyUse: { note: () => assert.fail('it was not let in') },
    });
    const client = { address: address('192.0.2.1'), certain: false, network: '192.0.2.1' };
    assert.equal(
      describeDecision(await authorizer.authorize(readKey(KEY), client, NOW_MS)),
      'API_KEY_IP_BLOCKED',
    );
  });
});

describe('a key that memory does not hold', () => {
  test('is invalid only after Postgres was asked', async () => {
    const { authorize, store } = open(OPEN, null);
    assert.equal(await authorize(KEY), 'API_KEY_INVALID');
    assert.equal(store.reads, 1);
    store.row = rowOf(FINE);
    assert.equal(await authorize(KEY), 'authorized 7');
    assert.equal(await authorize(KEY), 'authorized 7');
    assert.equal(store.reads, 2, 'and is remembered once it was found');
  });

  test('is read once for all calls that wait for it', async () => {
    const { authorize, store } = open(OPEN, null);
    store.row = rowOf(FINE);
    const answers = await Promise.all(Array.from({ length: 20 }, () => authorize(KEY)));
    assert.deepEqual(new Set(answers), new Set(['authorized 7']));
    assert.equal(store.reads, 1);
  });

  test('is read again when a change may have overtaken the read', async () => {
    const { authorize, store, keyring } = open(OPEN, null);
    store.row = rowOf(FINE);
    store.onRead = () => {
      if (store.reads > 1) return;
      keyring.dropKeys(new Set([99]), new Set());
      store.row = rowOf({ ...FINE, revoked: true });
    };
    assert.equal(await authorize(KEY), 'API_KEY_REVOKED');
    assert.equal(store.reads, 2);
  });

  test('cannot be evaluated without Postgres', async () => {
    const { authorize, store } = open(OPEN, null);
    store.isLost = true;
    await assert.rejects(authorize(KEY), DeadlineExceeded);
    assert.equal(await authorize('nothing like a key'), 'API_KEY_INVALID');
  });
});

/** A rate limiter that answers the first request of a call with `first`, and passes what was verified. */
function doubting(first: LimitVerdict, requests: LimitRequest[] = []): RateLimiter {
  return {
    check: (request) => {
      requests.push(request);
      return request.verified ? { kind: 'pass' } : first;
    },
  };
}

const NEWER: LimitVerdict = { kind: 'stale', worlds: [{ worldId: 11, state: 'newer', version: 5 }] };
const MISSING: LimitVerdict = { kind: 'stale', worlds: [{ worldId: 12, state: 'missing', ticket: '?1' }] };
const UNVERIFIED: LimitVerdict = { kind: 'unverified' };

describe('memory is in doubt', () => {
  for (const [name, verdict] of Object.entries({ NEWER, MISSING, UNVERIFIED })) {
    test(`${name}: the call waits until memory has caught up, and is evaluated by what it says then`, async () => {
      const desk = open(doubting(verdict));
      desk.feed.onCatchUp = () => {
        desk.keyring.dropKeys(new Set([7]), new Set());
        desk.store.row = rowOf({ ...FINE, revoked: true });
      };
      assert.equal(await desk.authorize(KEY), 'API_KEY_REVOKED');
      assert.equal(desk.feed.catchUps, 1);
    });
  }

  test('a version that Redis lost is given back as memory has it after catching up', async () => {
    const desk = open(doubting(MISSING));
    desk.feed.onCatchUp = () => desk.fleet.raiseVersion(12, 9);
    assert.equal(await desk.authorize(KEY), 'authorized 7');
    assert.deepEqual(desk.restored, ['12 9 ?1']);
  });

  test('the key is charged once, and its address once', async () => {
    const requests: LimitRequest[] = [];
    await open(doubting(UNVERIFIED, requests)).authorize(KEY);
    assert.deepEqual(
      requests.map(({ ip, keyId, refundIp, verified }) => ({ ip, keyId, refundIp, verified })),
      [
        { ip: '192.0.2.1', keyId: 7, refundIp: null, verified: false },
        { ip: null, keyId: 7, refundIp: '192.0.2.1', verified: true },
      ],
    );
  });

  test('Postgres is lost: memory answers, unless Redis knows of something newer', async () => {
    for (const [verdict, answers] of [
      [UNVERIFIED, true],
      [MISSING, true],
      [NEWER, false],
    ] as const) {
      const desk = open(doubting(verdict));
      desk.feed.onCatchUp = lost;
      if (answers) assert.equal(await desk.authorize(KEY), 'authorized 7');
      else await assert.rejects(desk.authorize(KEY), DeadlineExceeded);
      assert.deepEqual(desk.restored, [], 'nobody vouches for what was not compared');
    }
  });

  test('Postgres is lost and Redis compared nothing: it is asked once more, patiently', async () => {
    const desk = open(doubting(UNVERIFIED));
    desk.feed.onCatchUp = lost;
    desk.fleet.raiseVersion(12, 9);
    Object.assign(desk.redis, { worldId: 12, version: 9 });
    assert.equal(await desk.authorize(KEY), 'authorized 7');
    desk.redis.version = 10;
    await assert.rejects(desk.authorize(KEY), DeadlineExceeded);
    assert.equal(desk.redis.asked, 2);
    const compared = open(doubting(MISSING));
    compared.feed.onCatchUp = lost;
    assert.equal(await compared.authorize(KEY), 'authorized 7');
    assert.equal(compared.redis.asked, 0, 'what was compared is not asked for again');
  });

  test('what is a mistake and no loss is not passed over', async () => {
    const desk = open(doubting(UNVERIFIED));
    desk.feed.onCatchUp = () => {
      throw new TypeError('a mistake');
    };
    await assert.rejects(desk.authorize(KEY), TypeError);
  });
});

describe('memory has not been compared with Postgres for a while', () => {
  test('up to 3 s it is taken for the present', async () => {
    const desk = open(OPEN);
    desk.feed.lagMs = 3_000;
    assert.equal(await desk.authorize(KEY), 'authorized 7');
    assert.equal(desk.feed.catchUps, 0);
  });

  test('then each call first catches up, and is charged once', async () => {
    const requests: LimitRequest[] = [];
    const desk = open({
      check: (request) => {
        requests.push(request);
        return { kind: 'pass' };
      },
    });
    desk.feed.lagMs = 3_001;
    desk.feed.onCatchUp = () => {
      desk.keyring.dropKeys(new Set([7]), new Set());
      desk.store.row = rowOf({ ...FINE, ownerActive: false });
    };
    assert.equal(await desk.authorize(KEY), 'API_KEY_OWNER_INACTIVE');
    assert.deepEqual(
      requests.map(({ ip, keyId }) => [ip, keyId]),
      [
        ['192.0.2.1', null],
        [null, null],
      ],
    );
  });

  test('Postgres is lost: it answers up to 60 s, and then no more', async () => {
    const desk = open(OPEN);
    desk.feed.onCatchUp = lost;
    desk.feed.lagMs = 60_000;
    assert.equal(await desk.authorize(KEY), 'authorized 7');
    desk.feed.lagMs = 60_001;
    await assert.rejects(desk.authorize(KEY), DeadlineExceeded);
  });

  test('a Postgres that says nothing is not waited for by every call anew', async () => {
    const desk = open(OPEN);
    desk.feed.lagMs = 10_000;
    desk.feed.isUnresponsive = true;
    desk.feed.onCatchUp = () => new Promise(() => undefined);
    assert.equal(await desk.authorize(KEY), 'authorized 7');
    assert.equal(desk.feed.catchUps, 0);
  });

  test('a key found in Postgres does not make old memory new', async () => {
    const desk = open(OPEN, null);
    desk.store.row = rowOf(FINE);
    desk.feed.lagMs = 60_001;
    desk.feed.onCatchUp = lost;
    await assert.rejects(desk.authorize(KEY), DeadlineExceeded);
  });
});
