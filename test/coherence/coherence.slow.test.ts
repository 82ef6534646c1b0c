import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fingerprint, newKey, prefix, readKey } from '../../src/access/credentials.ts';
import { parseIpAddress } from '../../src/access/ipAddress.ts';
import { insertKey, revokeKey, selectKeyState } from '../../src/access/keys.sql.ts';
import { parseDraft } from '../../src/areas/areaDraft.ts';
import { lockAreaWorlds, moveArea } from '../../src/areas/areas.sql.ts';
import { addArea, patchArea, removeArea } from '../../src/areas/saveArea.ts';
import { pruneChanges } from '../../src/changelog/changes.sql.ts';
import { type WritePorts, type WriteScope, writeWorlds } from '../../src/changelog/writeWorlds.ts';
import { insertDevices, selectDevicesForUpdate, updateDevices } from '../../src/devices/devices.sql.ts';
import type { Fix } from '../../src/ingest/fix.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { localWorldVersions } from '../../src/redis/rateLimiter.ts';
import {
  insertAccount,
  lockForNewTenants,
  updateAccount,
  upsertOrganization,
} from '../../src/tenants/accounts.sql.ts';
import type { EndpointDraft } from '../../src/webhooks/endpoint.ts';
import { deleteWebhook, insertWebhook, updateWebhook } from '../../src/webhooks/webhooks.sql.ts';
import { CIRCLE, POLYGON } from '../support/http/areas.ts';
import { dropNotifications } from '../support/http/dropNotifications.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { newTurns } from '../support/workTurns.ts';
import { allWorlds, dump, dumpFresh, type MemoryPod, openMemoryPod } from './memoryPod.ts';

const SEEDS = IS_TORTURE ? Array.from({ length: 20 }, (_, n) => (Date.now() % 100_000) + n) : [1];
const STEPS = 120;
const DELAY_MAX_MS = 15;
const ORGANIZATIONS = ['Acme', 'Globex'];

interface Owner {
  readonly accountId: number;
  readonly worldId: number;
  worldIds: number[];
}

/** What the steps of a run have made so far. */
interface Things {
  readonly owners: Owner[];
  readonly devices: { readonly imei: string; readonly owner: Owner }[];
  readonly keys: { readonly id: number; readonly key: string }[];
  readonly areas: { readonly id: number; readonly owner: Owner }[];
  readonly webhooks: { readonly id: number; readonly owner: Owner }[];
}

/** One run: writes and points from two sides at once, with transactions that take their time. */
class Run {
  readonly things: Things = { owners: [], devices: [], keys: [], areas: [], webhooks: [] };
  readonly #ports: WritePorts;
  readonly #pods: readonly MemoryPod[];
  readonly #random: () => number;
  #count = 0;

  constructor(sql: Sql, pods: readonly MemoryPod[], random: () => number) {
    // No pod is notified of a write and nobody waited for: pods find everything in the feed.
    this.#ports = {
      sql,
      versions: localWorldVersions,
      awaitEverywhere: async () => undefined,
      turns: newTurns(),
    };
    this.#pods = pods;
    this.#random = random;
  }

  /** The kinds of steps, each with a weight. */
  readonly #kinds: readonly [weight: number, step: () => Promise<unknown>][] = [
    [3, () => this.#addOwner()],
    [4, () => this.#addDevice()],
    [3, () => this.#editDevice()],
    [2, () => this.#addKey()],
    [1, () => this.#revokeKey()],
    [2, () => this.#editOwner()],
    [2, () => this.#addArea()],
    [2, () => this.#editArea()],
    [2, () => this.#shareArea()],
    [1, () => this.#removeArea()],
    [2, () => this.#addWebhook()],
    [2, () => this.#editWebhook()],
    [1, () => this.#removeWebhook()],
    [6, () => this.#sendPoints()],
    [4, () => this.#call()],
    [2, () => this.#oneOf(this.#pods)?.follower.catchUp() ?? Promise.resolve()],
  ];

  async step(): Promise<void> {
    let at = this.#random() * this.#kinds.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, step] of this.#kinds) {
      at -= weight;
      if (at < 0) {
        await step();
        return;
      }
    }
  }

  #oneOf<T>(values: readonly T[]): T | undefined {
    return values[Math.floor(this.#random() * values.length)];
  }

  /** A write whose transaction stays open for a while, so that others overtake it. */
  #write<T>(work: (scope: WriteScope) => Promise<T>): Promise<T> {
    const delayMs = this.#random() * DELAY_MAX_MS;
    return writeWorlds(this.#ports, async (scope) => {
      const result = await work(scope);
      await sleep(delayMs);
      return result;
    });
  }

  async #addOwner(): Promise<void> {
    const organization = this.#random() < 0.6 ? this.#oneOf(ORGANIZATIONS) : undefined;
    const email = `owner${++this.#count}@x`;
    this.things.owners.push(
      await this.#write(async ({ tx, changed }) => {
        await lockForNewTenants(tx);
        const home = organization === undefined ? null : await upsertOrganization(tx, organization);
        const { id, worldId } = await insertAccount(tx, {
          email,
          name: 'A',
          organizationId: home?.id ?? null,
          plan: 'pro',
          passwordHash: null,
        });
        changed({ kind: 'account', worldId, entityIds: [id] });
        return { accountId: id, worldId, worldIds: home === null ? [worldId] : [worldId, home.worldId] };
      }),
    );
  }

  async #addDevice(): Promise<void> {
    const owner = this.#oneOf(this.things.owners);
    if (owner === undefined) return;
    const imei = String(350000000000000 + ++this.#count);
    const worldId = this.#oneOf(owner.worldIds) as number;
    await this.#write(async ({ tx, changed }) => {
      const draft = { imei, worldId, name: null, plate: null, model: null, groups: [] };
      const [device] = await insertDevices(tx, [draft]);
      changed({ kind: 'device', worldId, entityIds: [device?.id ?? 0] });
    });
    this.things.devices.push({ imei, owner });
  }

  async #editDevice(): Promise<void> {
    const device = this.#oneOf(this.things.devices);
    if (device === undefined) return;
    const worldId = this.#oneOf(device.owner.worldIds) as number;
    const name = `name ${++this.#count}`;
    await this.#write(async ({ tx, changed }) => {
      const [before] = await selectDevicesForUpdate(tx, [device.imei]);
      if (before === undefined) return;
      await updateDevices(tx, [{ ...before, worldId, name }]);
      for (const id of new Set([before.worldId, worldId])) {
        changed({ kind: 'device', worldId: id, entityIds: [before.id] });
      }
    });
  }

  async #addKey(): Promise<void> {
    const owner = this.#oneOf(this.things.owners);
    if (owner === undefined) return;
    const key = newKey(randomBytes);
    const id = await this.#write(async ({ tx, changed }) => {
      const draft = {
        name: null,
        fingerprint: fingerprint(key),
        prefix: prefix(key),
        scopes: ['read_devices'],
      };
      const keyId = await insertKey(tx, owner.accountId, { ...draft, allowlist: [] });
      changed({ kind: 'key', worldId: owner.worldId, entityIds: [keyId] });
      return keyId;
    });
    this.things.keys.push({ id, key });
  }

  async #revokeKey(): Promise<void> {
    const id = this.#oneOf(this.things.keys)?.id;
    if (id === undefined) return;
    await this.#write(async ({ tx, changed }) => {
      const revoked = await revokeKey(tx, id);
      if (revoked !== undefined) changed({ kind: 'key', worldId: revoked.worldId, entityIds: [id] });
    });
  }

  async #editOwner(): Promise<void> {
    const owner = this.#oneOf(this.things.owners);
    if (owner === undefined) return;
    const organization = this.#oneOf([...ORGANIZATIONS, null]) ?? null;
    const active = this.#random() < 0.7;
    await this.#write(async ({ tx, changed }) => {
      await lockForNewTenants(tx);
      const home = organization === null ? null : await upsertOrganization(tx, organization);
      await updateAccount(tx, owner.accountId, { organizationId: home?.id ?? null, active });
      changed({ kind: 'account', worldId: owner.worldId, entityIds: [owner.accountId] });
      owner.worldIds = home === null ? [owner.worldId] : [owner.worldId, home.worldId];
    });
  }

  async #addArea(): Promise<void> {
    const owner = this.#oneOf(this.things.owners);
    if (owner === undefined) return;
    const body = this.#random() < 0.5 ? CIRCLE : POLYGON;
    const outcome = await this.#write((scope) =>
      addArea(scope, owner, draft({ ...body, name: `a${++this.#count}` })),
    );
    if (outcome.kind === 'created') this.things.areas.push({ id: outcome.area.id, owner });
  }

  async #editArea(): Promise<void> {
    const area = this.#oneOf(this.things.areas);
    if (area === undefined) return;
    const center = { lat: this.#random() * 180 - 90, lng: this.#random() * 360 - 180 };
    await patchArea(this.#ports, area.owner, area.id, draft({ name: `b${++this.#count}`, center }));
  }

  async #shareArea(): Promise<void> {
    const area = this.#oneOf(this.things.areas);
    if (area === undefined) return;
    const shared = this.#random() < 0.6;
    await this.#write(async ({ tx, changed }) => {
      const homes = await lockAreaWorlds(tx, area.id);
      if (homes === undefined) return;
      const worldId = shared ? homes.organizationWorldId : homes.accountWorldId;
      if (worldId === null) return;
      await moveArea(tx, area.id, worldId);
      for (const id of new Set([homes.worldId, worldId])) {
        changed({ kind: 'area', worldId: id, entityIds: [area.id] });
      }
    });
  }

  async #removeArea(): Promise<void> {
    const area = this.#oneOf(this.things.areas);
    if (area !== undefined) await removeArea(this.#ports, area.owner, area.id);
  }

  async #addWebhook(): Promise<void> {
    const owner = this.#oneOf(this.things.owners);
    if (owner === undefined) return;
    const made = await this.#write(async ({ tx, changed }) => {
      const webhook = await insertWebhook(tx, owner.accountId, this.#endpoint(), Buffer.alloc(8), 100);
      if (webhook !== undefined)
        changed({ kind: 'webhook', worldId: owner.worldId, entityIds: [webhook.id] });
      return webhook;
    });
    if (made !== undefined) this.things.webhooks.push({ id: made.id, owner });
  }

  async #editWebhook(): Promise<void> {
    const webhook = this.#oneOf(this.things.webhooks);
    if (webhook === undefined) return;
    const { id, owner } = webhook;
    await this.#write(async ({ tx, changed }) => {
      await updateWebhook(tx, owner.accountId, id, this.#endpoint());
      changed({ kind: 'webhook', worldId: owner.worldId, entityIds: [id] });
    });
  }

  async #removeWebhook(): Promise<void> {
    const webhook = this.#oneOf(this.things.webhooks);
    if (webhook === undefined) return;
    const { id, owner } = webhook;
    await this.#write(async ({ tx, changed }) => {
      await deleteWebhook(tx, owner.accountId, id);
      changed({ kind: 'webhook', worldId: owner.worldId, entityIds: [id] });
    });
  }

  #endpoint(): EndpointDraft {
    return {
      url: 'https://example.com/',
      description: null,
      events: [this.#oneOf(['*', 'geofence_enter', 'alarm'] as const) ?? '*'],
      retry_policy: 'none',
      max_retries: 0,
      active: this.#random() < 0.7,
    };
  }

  async #sendPoints(): Promise<void> {
    const count = 1 + Math.floor(this.#random() * 5);
    const fixes = Array.from({ length: count }, () => this.#fix()).filter((fix) => fix !== null);
    await this.#oneOf(this.#pods)?.ingest.store(fixes);
  }

  #fix(): Fix | null {
    const device = this.#oneOf(this.things.devices);
    if (device === undefined) return null;
    return {
      imei: device.imei,
      recordedAtMs: Date.UTC(2026, 0, 5) + Math.floor(this.#random() * 3_600_000),
      sentAtMs: null,
      lat: this.#random() * 180 - 90,
      lng: this.#random() * 360 - 180,
      altitudeM: 1,
      speedKmh: 10,
      heading: 0,
      satellites: 5,
      odometerKm: null,
      ignition: null,
      alarms: [],
      rfid: null,
    };
  }

  /** Every pod holds every key, and then their owners change. */
  async editOwnersOfHeldKeys(): Promise<void> {
    for (const pod of this.#pods) {
      for (const { key } of this.things.keys) await this.#authorize(pod, key);
    }
    for (let n = 0; n < this.things.owners.length; n++) await this.#editOwner();
  }

  /** So that pods have keys to forget. */
  async #call(): Promise<void> {
    const [pod, key] = [this.#oneOf(this.#pods), this.#oneOf(this.things.keys)?.key];
    if (pod !== undefined && key !== undefined) await this.#authorize(pod, key);
  }

  async #authorize(pod: MemoryPod, key: string): Promise<void> {
    const address = parseIpAddress('192.0.2.1');
    assert.ok(address);
    await pod.authorizer.authorize(
      readKey(key),
      { address, certain: true, network: address.text },
      Date.now(),
    );
  }

  /**
   * A pod that did not look since then must load everything. Called while nothing else is under way, and up to a
   * change made after all others: what is old enough to be pruned has ended long ago.
   */
  async prune(): Promise<void> {
    const owner = this.#oneOf(this.things.owners);
    if (owner === undefined) return;
    await this.#write(async ({ changed }) => {
      changed({ kind: 'account', worldId: owner.worldId, entityIds: [owner.accountId] });
    });
    await this.#ports.sql`
      update change set at = at - interval '1 hour'
      where random() < 0.5 or xid = (select max(xid) from change)`;
    await pruneChanges(this.#ports.sql);
  }
}

function draft(body: object) {
  const parsed = parseDraft(body);
  assert.ok(parsed.ok);
  return parsed.value;
}

async function proveCoherent(sql: Sql, pods: readonly MemoryPod[], things: Things): Promise<void> {
  const worldIds = await allWorlds(sql);
  const fresh = await dumpFresh(sql, worldIds);
  for (const pod of pods) {
    await pod.follower.catchUp();
    assert.deepEqual(dump(pod, worldIds), fresh);
    for (const { key } of things.keys) {
      const held = pod.keyring.get(fingerprint(key));
      if (held !== undefined) assert.deepEqual(held, await selectKeyState(sql, fingerprint(key)));
    }
  }
}

describe('memory of two pods, changed from all sides without notifications', () => {
  for (const seed of SEEDS) {
    test(`equals a fresh load (seed ${seed})`, async (t: TestContext) => {
      const { url, drop } = await createDatabase();
      await dropNotifications(url);
      const sql = openSql(url, { maxConnections: 8, name: 'test' });
      const pods = [openMemoryPod(url), openMemoryPod(url)];
      t.after(async () => {
        await Promise.all(pods.map((pod) => pod.close()));
        await sql.end();
        await drop();
      });
      const random = seededRandom(seed);
      const run = new Run(sql, pods, random);
      for (const pod of pods) await pod.follower.start();
      for (let round = 0; round < 3; round++) {
        let under: Promise<void>[] = [];
        for (let step = 0; step < STEPS / 3; step++) {
          under.push(run.step());
          if (random() < 0.3) await sleep(random() * DELAY_MAX_MS);
          if (under.length < 6) continue;
          await Promise.all(under);
          under = [];
          if (random() < 0.2) await run.prune();
        }
        await Promise.all(under);
        await run.editOwnersOfHeldKeys();
        await proveCoherent(sql, pods, run.things);
      }
      assert.ok(run.things.devices.length > 1, 'the run has something to show');
    });
  }
});
