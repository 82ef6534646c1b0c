import assert from 'node:assert/strict';
import { type AreaDefinition, compileShape } from '../../../src/areas/area.ts';
import { type Area, AreaCatalog } from '../../../src/areas/areaCatalog.memory.ts';
import { completeDraft, mergeDraft, parseDraft } from '../../../src/areas/areaDraft.ts';
import { decodeStays, encodeStays } from '../../../src/devices/stays/stays.ts';
import { geofenceEventData } from '../../../src/events/fleetEvent.ts';
import { type DeviceState, evaluateBatch, NO_STATE } from '../../../src/ingest/deviceEvents.ts';
import { evaluateGeofences, type GeofenceEventAt, watchedAreas } from '../../../src/ingest/evaluateFixes.ts';
import type { BatchPoint } from '../../../src/ingest/fix.ts';
import { formatIso } from '../../../src/lib/time.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { Tenancy } from '../../../src/tenants/tenancy.memory.ts';
import { instantMs, type ReportedEvent } from './expectedEvents.ts';
import type { AreaBody, Step, Trace, TracePoint } from './trace.ts';

/** Plays a story with the pure parts of the engine: memory and evaluation, with the stays as the database keeps them. */
export class EnginePlayer {
  readonly #trace: Trace;
  readonly #startMs: number;
  readonly #areas = new AreaCatalog();
  readonly #tenancy = new Tenancy();
  readonly #accounts: readonly string[];
  readonly #organizations: readonly string[];
  readonly #organizationOf = new Map<string, string | null>();
  /** Area ids and who made them, by the names of the story. */
  readonly #made = new Map<string, { id: number; by: string }>();
  readonly #states = new Map<number, DeviceState>();
  /** As the database would keep them. */
  readonly #stays = new Map<number, string>();
  readonly #events: GeofenceEventAt[] = [];

  constructor(trace: Trace, startMs: number) {
    this.#trace = trace;
    this.#startMs = startMs;
    this.#accounts = Object.keys(trace.accounts);
    const joined = trace.steps.flatMap((step) => (step.kind === 'join' ? [step.organization] : []));
    const named = [...Object.values(trace.accounts).map(({ organization }) => organization), ...joined];
    this.#organizations = [...new Set(named.filter((name) => name !== null))];
    for (const [name, { organization }] of Object.entries(trace.accounts)) this.#join(name, organization);
  }

  /** The events of the whole story, in the order of production. */
  play(): ReportedEvent[] {
    for (const step of this.#trace.steps) this.#take(step);
    return this.#events.map(({ point: { deviceId }, event }) => {
      const { areaId, ...data } = geofenceEventData(event);
      return {
        device: Object.keys(this.#trace.devices)[deviceId],
        area: [...this.#made].find(([, { id }]) => id === areaId)?.[0],
        occurredAt: formatIso(event.occurredAtMs),
        readBy: this.#accounts.filter(
          (name) => event.worldId === this.#worldOf(name) || event.worldId === this.#sharedWorldOf(name),
        ),
        data,
      };
    });
  }

  #take(step: Step): void {
    switch (step.kind) {
      case 'send':
        this.#send(step.points);
        break;
      case 'create': {
        const id = this.#made.size + 1;
        this.#made.set(step.area, { id, by: step.by });
        this.#put(id, this.#worldOf(step.by), saved(null, step.body));
        break;
      }
      case 'patch': {
        const { id, worldId, definition } = this.#area(step.area);
        this.#put(id, worldId, saved(definition, step.body));
        break;
      }
      case 'delete':
        this.#areas.remove(this.#area(step.area).id);
        break;
      case 'share':
      case 'unshare': {
        const area = this.#area(step.area);
        const owner = this.#made.get(step.area)?.by ?? '';
        const worldId = step.kind === 'share' ? this.#sharedWorldOf(owner) : this.#worldOf(owner);
        assert.ok(worldId, 'who shares belongs to an organization');
        this.#put(area.id, worldId, area);
        break;
      }
      case 'join':
        this.#join(step.account, step.organization);
        break;
    }
  }

  #send(points: readonly TracePoint[]): void {
    const batch = points.map((point) => this.#pointOf(point));
    const before = new Map(
      [...this.#states].map(([deviceId, state]) => [
        deviceId,
        { state, stays: decodeStays(this.#stays.get(deviceId) ?? '[]') },
      ]),
    );
    const { inOrder, moved } = inOneGo(evaluateBatch(batch, before, this.#startMs));
    const watchOf = (deviceId: number) =>
      watchedAreas(this.#areas, this.#tenancy, this.#worldOfDevice(deviceId));
    const limits = { ofDevice: Number.POSITIVE_INFINITY, ofBatch: Number.POSITIVE_INFINITY };
    const { stays, events } = inOneGo(evaluateGeofences(inOrder, before, watchOf, limits));
    for (const [deviceId, state] of moved) this.#states.set(deviceId, state);
    for (const [deviceId, list] of stays) this.#stays.set(deviceId, encodeStays(list));
    this.#events.push(...events);
  }

  #pointOf({ device, atSeconds, latitude, longitude }: TracePoint): BatchPoint {
    const deviceId = Object.keys(this.#trace.devices).indexOf(device);
    if (!this.#states.has(deviceId)) this.#states.set(deviceId, NO_STATE);
    const place = { lat: latitude, lng: longitude, altitudeM: 0, speedKmh: 30, heading: 0, satellites: 0 };
    const extras = { sentAtMs: null, odometerKm: null, ignition: null, alarms: [], rfid: null };
    const imei = String(350_000_000_000_000 + deviceId);
    return {
      deviceId,
      fix: { imei, recordedAtMs: instantMs(this.#startMs, atSeconds), ...place, ...extras },
    };
  }

  #put(id: number, worldId: number, { definition, measures }: Defined): void {
    const stored = { id, worldId, accountId: 1, definition, measures, createdAtMs: 0, revision: 1 };
    this.#areas.put({ ...stored, shape: compileShape(definition.geometry) });
  }

  #area(name: string): Area {
    const area = this.#areas.area(this.#worlds(), this.#made.get(name)?.id ?? 0);
    assert.ok(area, `the story has an area ${name}`);
    return area;
  }

  #join(account: string, organization: string | null): void {
    this.#organizationOf.set(account, organization);
    const worldId = this.#worldOf(account);
    this.#tenancy.putAccount(worldId, worldId, this.#sharedWorldOf(account));
  }

  // Worlds are numbered: the accounts', then the organizations'.

  #worlds(): number[] {
    return [...this.#accounts, ...this.#organizations].map((_, n) => n + 1);
  }

  #worldOf(account: string): number {
    return this.#accounts.indexOf(account) + 1;
  }

  #sharedWorldOf(account: string): number | null {
    const organization = this.#organizationOf.get(account) ?? null;
    return organization === null
      ? null
      : this.#accounts.length + this.#organizations.indexOf(organization) + 1;
  }

  #worldOfDevice(deviceId: number): number {
    const device = Object.values(this.#trace.devices)[deviceId];
    assert.ok(device, 'a story has the devices that it drives');
    const worldId = device.shared ? this.#sharedWorldOf(device.owner) : this.#worldOf(device.owner);
    assert.ok(worldId, 'who shares belongs to an organization');
    return worldId;
  }
}

type Defined = Pick<Area, 'definition' | 'measures'>;

/** A body of POST or PATCH as it would be stored. */
function saved(stored: AreaDefinition | null, body: AreaBody): Defined {
  const draft = parseDraft(body);
  assert.ok(draft.ok, JSON.stringify(draft));
  const valid = stored === null ? completeDraft(draft.value) : mergeDraft(stored, draft.value);
  assert.ok(valid.ok, JSON.stringify(valid));
  return valid.value;
}
