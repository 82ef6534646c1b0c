import assert from 'node:assert/strict';
import { instantMs, type ReportedEvent } from '../../ingest/traces/expectedEvents.ts';
import type { Step, Trace, TracePoint } from '../../ingest/traces/trace.ts';
import type { Pod } from '../pod.ts';
import type { Admin } from '../postgres/admin.ts';
import { type AreaApi, areaApi } from './areas.ts';
import type { Tenants } from './registerTraces.ts';

/** A geofence event as GET /events shows it. */
export interface WireEvent {
  readonly id: number;
  readonly type: string;
  readonly message: string;
  readonly device_imei: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly read: boolean;
  readonly occurred_at: string;
}

export interface PlayerPorts {
  /** The pod of the next call. */
  readonly nextPod: () => Pod;
  readonly admin: Admin;
  readonly startMs: number;
}

/** Stories that are played side by side. With all of them at once, a slow machine opens no connection in time. */
const LANES = 6;

/** Calls `play` for each of the players, for a few of them at a time. */
export async function inLanes(
  players: readonly ApiPlayer[],
  play: (player: ApiPlayer) => Promise<void>,
): Promise<void> {
  const waiting = players.values();
  const lane = async () => {
    for (const player of waiting) await play(player);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** Plays a story through the listeners of the service. The table is the one that the engine alone is evaluated by. */
export class ApiPlayer {
  readonly trace: Trace;
  readonly tenants: Tenants;
  readonly #ports: PlayerPorts;
  /** Areas that were made, by their names in the story. */
  readonly areas = new Map<string, { readonly id: number; readonly by: string }>();

  constructor(trace: Trace, tenants: Tenants, ports: PlayerPorts) {
    this.trace = trace;
    this.tenants = tenants;
    this.#ports = ports;
  }

  /** Takes the steps from one number up to another, each when the one before is acknowledged. */
  async play(from = 0, to = this.trace.steps.length): Promise<void> {
    for (const step of this.trace.steps.slice(from, to)) await this.#take(step);
  }

  /** What all accounts together find in their lists of events, in the order of production. */
  async reportedEvents(): Promise<ReportedEvent[]> {
    const found = new Map<number, { event: WireEvent; readBy: string[] }>();
    for (const account of Object.keys(this.trace.accounts)) {
      for (const event of await this.events(account, 'v3', 'type=geofence')) {
        const known = found.get(event.id) ?? { event, readBy: [] };
        assert.deepEqual(known.event, event, 'an event is the same for all its readers');
        known.readBy.push(account);
        found.set(event.id, known);
      }
    }
    const inOrder = [...found.values()].sort((a, b) => a.event.id - b.event.id);
    return inOrder.map(({ event, readBy }) => {
      const { areaId, ...data } = event.data;
      return {
        device: [...this.tenants.imeis].find(([, imei]) => imei === event.device_imei)?.[0],
        area: [...this.areas].find(([, { id }]) => id === areaId)?.[0],
        occurredAt: event.occurred_at,
        readBy,
        data,
      };
    });
  }

  async events(account: string, version: 'v2' | 'v3', query: string): Promise<WireEvent[]> {
    const path = `/api/${version}/events?limit=200&${query}`;
    const reply = await this.#ports.nextPod().get(path, this.tenants.keys.get(account));
    assert.equal(reply.status, 200, reply.text);
    return reply.body.data;
  }

  /** The area routes as an account of the story sees them, on the next pod. */
  api(account: string): AreaApi {
    return areaApi(this.#ports.nextPod(), this.tenants.keys.get(account) ?? '');
  }

  async #take(step: Step): Promise<void> {
    const { admin } = this.#ports;
    switch (step.kind) {
      case 'send':
        await this.#ports.nextPod().points(step.points.map((point) => this.#wire(point)));
        break;
      case 'create':
        this.areas.set(step.area, { id: await this.api(step.by).make(step.body), by: step.by });
        break;
      case 'patch': {
        const { id, by } = this.#area(step.area);
        const reply = await this.api(by).patch(id, step.body);
        assert.equal(reply.status, 200, reply.text);
        break;
      }
      case 'delete': {
        const { id, by } = this.#area(step.area);
        assert.equal((await this.api(by).remove(id)).status, 204);
        break;
      }
      case 'share':
      case 'unshare':
        await admin.run(`area:${step.kind}`, '--id', String(this.#area(step.area).id));
        break;
      case 'join': {
        const organization =
          step.organization === null ? 'none' : this.tenants.organization(step.organization);
        const email = this.tenants.emails.get(step.account) ?? '';
        await admin.run('account:update', '--email', email, '--organization', organization);
      }
    }
  }

  #wire({ device, atSeconds, latitude, longitude }: TracePoint): object {
    const recordedAt = instantMs(this.#ports.startMs, atSeconds);
    return {
      imei: this.tenants.imeis.get(device),
      recorded_at: recordedAt,
      latitude,
      longitude,
      speed_kmh: 30,
    };
  }

  #area(name: string): { readonly id: number; readonly by: string } {
    const area = this.areas.get(name);
    assert.ok(area, `the story has an area ${name}`);
    return area;
  }
}
