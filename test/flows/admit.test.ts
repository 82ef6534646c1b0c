import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAllowlist } from '../../src/access/allowlist.ts';
import { fingerprint, readKey } from '../../src/access/apiKey.ts';
import { CidrSet } from '../../src/access/cidrSet.ts';
import { clientAddress } from '../../src/access/clientAddress.ts';
import { type IpAddress, parseIpAddress } from '../../src/access/ipAddress.ts';
import type { KeyState } from '../../src/access/keyState.ts';
import { scopeMask } from '../../src/access/scopes.ts';
import { DeadlineExceeded } from '../../src/base/deadline.ts';
import { type Admission, Admittance } from '../../src/flows/admit.ts';
import { Fleet } from '../../src/memory/fleet.ts';
import { Keyring } from '../../src/memory/keyring.ts';
import type { Gate, GateRequest, GateVerdict } from '../../src/queue/gate.ts';
import { LocalGate } from '../../src/queue/localGate.ts';
import type { Sql } from '../../src/store/sql.ts';

const NOW_MS = 1_700_000_000_000;
const MINUTE_MS = 60_000;
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

/** Postgres as far as admission asks it: one key, or its loss. */
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
  revoked: key.revoked,
  active: key.ownerActive,
  history_days: key.historyDays,
});

interface Desk {
  admit(apiKey: string | undefined, nowMs?: number, ip?: string): Promise<string>;
  readonly store: Store;
  readonly keyring: Keyring;
  readonly fleet: Fleet;
  /** What the feed will bring, and whether it can be read at all. */
  readonly feed: {
    lagMs: number;
    isSilent: boolean;
    catchUps: number;
    onCatchUp: () => void | Promise<void>;
  };
  readonly restored: string[];
}

/** An admittance with a key in memory, a gate, and a Postgres that does as it is told. */
function open(gate: Gate, key: KeyState | null = FINE): Desk {
  const keyring = new Keyring();
  if (key !== null) keyring.put(fingerprint(KEY), key, keyring.epoch);
  const fleet = new Fleet();
  const store: Store = { row: undefined, isLost: false, reads: 0, onRead: () => undefined };
  const restored: string[] = [];
  const feed = { lagMs: 0, isSilent: false, catchUps: 0, onCatchUp: (): void | Promise<void> => undefined };
  const sql = async () => {
    store.reads++;
    if (store.isLost) throw new DeadlineExceeded('lost');
    const { row } = store;
    store.onRead();
    return row === undefined ? [] : [row];
  };
  const admittance = new Admittance({
    sql: sql as unknown as Sql,
    fleet,
    keyring,
    gate,
    follower: {
      writesLagMs: () => feed.lagMs,
      get isSilent() {
        return feed.isSilent;
      },
      catchUp: async () => {
        feed.catchUps++;
        await feed.onCatchUp();
      },
    },
    restoreVersion: async (worldId, version, ticket) => void restored.push(`${worldId} ${version} ${ticket}`),
    noteUse: () => undefined,
  });
  return {
    admit: async (apiKey, nowMs = NOW_MS, ip = '192.0.2.1') => {
      const client = clientAddress(ip, undefined, new CidrSet([]));
      return describeAdmission(await admittance.admit(readKey(apiKey), client, nowMs));
    },
    store,
    keyring,
    fleet,
    feed,
    restored,
  };
}

function describeAdmission(admission: Admission): string {
  switch (admission.kind) {
    case 'admitted':
      return `admitted ${admission.caller.id}`;
    case 'refused':
      return admission.code;
    case 'limited':
      return admission.limit;
  }
}

const lost = (): never => {
  throw new DeadlineExceeded('Postgres is lost');
};

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

  test('120 calls of a key in a minute that begins with its first call', async () => {
    const { admit } = open(new LocalGate({ limits: { ...limits, ipMinute: 0 } }));
    assert.deepEqual(await times(130, () => admit(KEY)), { 'admitted 7': 120, key_minute: 10 });
    assert.equal(await admit(KEY, NOW_MS + MINUTE_MS - 1), 'key_minute');
    assert.deepEqual(await times(130, () => admit(KEY, NOW_MS + MINUTE_MS)), {
      'admitted 7': 120,
      key_minute: 10,
    });
  });

  test('1000 calls of a key in an hour, of which refused ones are none', async () => {
    const { admit } = open(new LocalGate({ limits: { ...limits, ipMinute: 0 } }));
    let admitted = 0;
    for (let minute = 0; minute < 60; minute++) {
      const counts = await times(140, () => admit(KEY, NOW_MS + minute * MINUTE_MS));
      admitted += counts['admitted 7'] ?? 0;
    }
    assert.equal(admitted, 1000);
    assert.equal(await admit(KEY, NOW_MS + 60 * MINUTE_MS - 1), 'key_hour');
    assert.equal(await admit(KEY, NOW_MS + 60 * MINUTE_MS), 'admitted 7');
  });

  test('120 calls of an address in a minute, whatever became of them', async () => {
    const { admit, store } = open(new LocalGate({ limits: { ...limits, keyMinute: 0, keyHour: 0 } }));
    const keys = [undefined, '', 'no key at all', KEY, OTHER_KEY];
    let n = 0;
    const counts = await times(200, () => admit(keys[n++ % keys.length]));
    assert.equal(counts['ip_minute'], 80);
    assert.equal(store.reads, 24, 'an address over its limit costs Postgres nothing');
    assert.equal(await admit(KEY, NOW_MS, '192.0.2.2'), 'admitted 7');
    assert.equal(await admit(KEY, NOW_MS + MINUTE_MS), 'admitted 7');
  });

  test('a call refused for its key costs its address nothing', async () => {
    const { admit, store } = open(new LocalGate({ limits: { ...limits, keyMinute: 5 } }));
    assert.deepEqual(await times(300, () => admit(KEY)), { 'admitted 7': 5, key_minute: 295 });
    // 115 are left for keys that no limit refuses: known or not, first seen or not.
    store.row = { ...rowOf(FINE), id: 8 };
    assert.deepEqual(await times(200, () => admit(OTHER_KEY)), { 'admitted 8': 5, key_minute: 195 });
    assert.deepEqual(await times(200, () => admit(undefined)), { API_KEY_REQUIRED: 110, ip_minute: 90 });
  });

  test('a call refused for its address or by judgement costs its key nothing', async () => {
    const { admit, keyring } = open(new LocalGate({ limits: { ...limits, ipMinute: 10, keyMinute: 3 } }));
    keyring.put(fingerprint(OTHER_KEY), { ...FINE, revoked: true }, keyring.epoch);
    assert.deepEqual(await times(5, () => admit(OTHER_KEY)), { API_KEY_REVOKED: 5 });
    assert.deepEqual(await times(5, () => admit(undefined)), { API_KEY_REQUIRED: 5 });
    assert.deepEqual(await times(5, () => admit(KEY)), { ip_minute: 5 });
    assert.deepEqual(await times(5, () => admit(KEY, NOW_MS, '192.0.2.9')), {
      'admitted 7': 3,
      key_minute: 2,
    });
  });

  test('a limit of 0 is none', async () => {
    const { admit } = open(new LocalGate({ limits: { ipMinute: 0, keyMinute: 0, keyHour: 0 } }));
    assert.deepEqual(await times(2000, () => admit(KEY)), { 'admitted 7': 2000 });
  });
});

const OPEN: Gate = { admit: () => ({ kind: 'pass' }) };

describe('judgement, in its order', () => {
  const blocked = { allowlist: allow('198.51.100.7') };
  const cases: [name: string, key: KeyState, expected: string][] = [
    ['a fine key', FINE, 'admitted 7'],
    [
      'revoked before all else',
      { ...FINE, ...blocked, revoked: true, ownerActive: false },
      'API_KEY_REVOKED',
    ],
    [
      'an inactive owner before the allowlist',
      { ...FINE, ...blocked, ownerActive: false },
      'API_KEY_OWNER_INACTIVE',
    ],
    ['an address outside of the allowlist', { ...FINE, ...blocked }, 'API_KEY_IP_BLOCKED'],
    ['an address inside of it', { ...FINE, allowlist: allow('192.0.2.0/24') }, 'admitted 7'],
  ];
  for (const [name, key, expected] of cases) {
    test(name, async () => assert.equal(await open(OPEN, key).admit(KEY), expected));
  }

  test('an address that is not certain opens no allowlist', async () => {
    const keyring = new Keyring();
    keyring.put(fingerprint(KEY), { ...FINE, allowlist: allow('192.0.2.1') }, keyring.epoch);
    const admittance = new Admittance({
      sql: (() => assert.fail()) as unknown as Sql,
      fleet: new Fleet(),
      keyring,
      gate: OPEN,
      follower: { writesLagMs: () => 0, isSilent: false, catchUp: () => assert.fail() },
      restoreVersion: () => assert.fail(),
      noteUse: () => assert.fail('it was not let in'),
    });
    const client = { address: address('192.0.2.1'), certain: false, network: '192.0.2.1' };
    assert.equal(
      describeAdmission(await admittance.admit(readKey(KEY), client, NOW_MS)),
      'API_KEY_IP_BLOCKED',
    );
  });
});

describe('a key that memory does not hold', () => {
  test('is invalid only after Postgres was asked', async () => {
    const { admit, store } = open(OPEN, null);
    assert.equal(await admit(KEY), 'API_KEY_INVALID');
    assert.equal(store.reads, 1);
    store.row = rowOf(FINE);
    assert.equal(await admit(KEY), 'admitted 7');
    assert.equal(await admit(KEY), 'admitted 7');
    assert.equal(store.reads, 2, 'and is remembered once it was found');
  });

  test('is read once for all calls that wait for it', async () => {
    const { admit, store } = open(OPEN, null);
    store.row = rowOf(FINE);
    const answers = await Promise.all(Array.from({ length: 20 }, () => admit(KEY)));
    assert.deepEqual(new Set(answers), new Set(['admitted 7']));
    assert.equal(store.reads, 1);
  });

  test('is read again when a change may have overtaken the read', async () => {
    const { admit, store, keyring } = open(OPEN, null);
    store.row = rowOf(FINE);
    store.onRead = () => {
      if (store.reads > 1) return;
      keyring.dropKeys(new Set([99]), new Set());
      store.row = rowOf({ ...FINE, revoked: true });
    };
    assert.equal(await admit(KEY), 'API_KEY_REVOKED');
    assert.equal(store.reads, 2);
  });

  test('cannot be judged without Postgres', async () => {
    const { admit, store } = open(OPEN, null);
    store.isLost = true;
    await assert.rejects(admit(KEY), DeadlineExceeded);
    assert.equal(await admit('nothing like a key'), 'API_KEY_INVALID');
  });
});

/** A gate that answers the first request of a call with `first`, and passes what was verified. */
function doubting(first: GateVerdict, requests: GateRequest[] = []): Gate {
  return {
    admit: (request) => {
      requests.push(request);
      return request.verified ? { kind: 'pass' } : first;
    },
  };
}

const NEWER: GateVerdict = { kind: 'stale', worlds: [{ worldId: 11, state: 'newer', version: 5 }] };
const MISSING: GateVerdict = { kind: 'stale', worlds: [{ worldId: 12, state: 'missing', ticket: '?1' }] };
const UNVERIFIED: GateVerdict = { kind: 'unverified' };

describe('memory is in doubt', () => {
  for (const [name, verdict] of Object.entries({ NEWER, MISSING, UNVERIFIED })) {
    test(`${name}: the call waits until memory has caught up, and is judged by what it says then`, async () => {
      const desk = open(doubting(verdict));
      desk.feed.onCatchUp = () => {
        desk.keyring.dropKeys(new Set([7]), new Set());
        desk.store.row = rowOf({ ...FINE, revoked: true });
      };
      assert.equal(await desk.admit(KEY), 'API_KEY_REVOKED');
      assert.equal(desk.feed.catchUps, 1);
    });
  }

  test('a version that Redis lost is given back as memory has it after catching up', async () => {
    const desk = open(doubting(MISSING));
    desk.feed.onCatchUp = () => desk.fleet.raiseVersion(12, 9);
    assert.equal(await desk.admit(KEY), 'admitted 7');
    assert.deepEqual(desk.restored, ['12 9 ?1']);
  });

  test('the key is charged once, and its address once', async () => {
    const requests: GateRequest[] = [];
    await open(doubting(UNVERIFIED, requests)).admit(KEY);
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
      if (answers) assert.equal(await desk.admit(KEY), 'admitted 7');
      else await assert.rejects(desk.admit(KEY), DeadlineExceeded);
      assert.deepEqual(desk.restored, [], 'nobody vouches for what was not compared');
    }
  });

  test('what is a mistake and no loss is not passed over', async () => {
    const desk = open(doubting(UNVERIFIED));
    desk.feed.onCatchUp = () => {
      throw new TypeError('a mistake');
    };
    await assert.rejects(desk.admit(KEY), TypeError);
  });
});

describe('memory has not been compared with Postgres for a while', () => {
  test('up to 3 s it is taken for the present', async () => {
    const desk = open(OPEN);
    desk.feed.lagMs = 3_000;
    assert.equal(await desk.admit(KEY), 'admitted 7');
    assert.equal(desk.feed.catchUps, 0);
  });

  test('then each call first catches up, and is charged once', async () => {
    const requests: GateRequest[] = [];
    const desk = open({
      admit: (request) => {
        requests.push(request);
        return { kind: 'pass' };
      },
    });
    desk.feed.lagMs = 3_001;
    desk.feed.onCatchUp = () => {
      desk.keyring.dropKeys(new Set([7]), new Set());
      desk.store.row = rowOf({ ...FINE, ownerActive: false });
    };
    assert.equal(await desk.admit(KEY), 'API_KEY_OWNER_INACTIVE');
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
    assert.equal(await desk.admit(KEY), 'admitted 7');
    desk.feed.lagMs = 60_001;
    await assert.rejects(desk.admit(KEY), DeadlineExceeded);
  });

  test('a Postgres that says nothing is not waited for by every call anew', async () => {
    const desk = open(OPEN);
    desk.feed.lagMs = 10_000;
    desk.feed.isSilent = true;
    desk.feed.onCatchUp = () => new Promise(() => undefined);
    assert.equal(await desk.admit(KEY), 'admitted 7');
    assert.equal(desk.feed.catchUps, 0);
  });

  test('a key found in Postgres does not make old memory new', async () => {
    const desk = open(OPEN, null);
    desk.store.row = rowOf(FINE);
    desk.feed.lagMs = 60_001;
    desk.feed.onCatchUp = lost;
    await assert.rejects(desk.admit(KEY), DeadlineExceeded);
  });
});
