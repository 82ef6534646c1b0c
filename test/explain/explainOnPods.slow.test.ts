import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KnownPoint, naiveOutcome, naiveVerdict, naiveVisits } from '../support/history/naiveVisits.ts';
import { startAreaPods } from '../support/http/areaPods.ts';
import type { AreaApi } from '../support/http/areas.ts';
import type { Admin } from '../support/postgres/admin.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

// Seeded histories on two pods: points in batches of all sizes, some late, and in between changes of the shape, the
// minimum stay and the owners. Whatever window is asked for, the explanation has the events that were recorded, and for
// what is missing the verdict of a naive replay.

const SEED = Number(process.env['FLEET_SEED'] ?? 7);
const HISTORIES = IS_TORTURE ? 1_000 : 3;
const ROUNDS = 12;
const WINDOWS = 4;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const OWNER = 'owner@example.com';
const MATE = 'mate@example.com';
/** Degrees north of the centre of the area: in every shape that it has, only in the large one, far away. */
const PLACES = { in: 0, between: 0.006, out: 0.1 } as const;
const SMALL_M = 300;
const LARGE_M = 2_000;
const DWELLS = [0, 30, 300, 1_200];

type Random = () => number;
type Place = keyof typeof PLACES;
type Holder = 'owner' | 'mate' | 'organization';

/** What the area and the devices are like now, as the test knows it. */
interface Model {
  radiusM: number;
  dwellSeconds: number;
  isShared: boolean;
  readonly members: { owner: boolean; mate: boolean };
  readonly holders: Holder[];
}

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

function watches({ isShared, members }: Model, holder: Holder): boolean {
  if (holder === 'organization') return isShared || members.owner;
  return isShared ? members[holder] : holder === 'owner';
}

class History {
  readonly points: KnownPoint[][] = [[], []];
  readonly late: number[][] = [[], []];
  readonly model: Model;
  readonly id: number;
  readonly #imeis: readonly string[];
  readonly #random: Random;
  readonly #apis: readonly AreaApi[];
  readonly #admin: Admin;
  readonly #center: { lat: number; lng: number };
  readonly #newestMs: number[];

  constructor(
    options: { id: number; imeis: readonly string[]; center: { lat: number; lng: number }; startMs: number },
    { random, apis, admin }: { random: Random; apis: readonly AreaApi[]; admin: Admin },
    model: Model,
  ) {
    this.id = options.id;
    this.#imeis = options.imeis;
    this.#center = options.center;
    this.#newestMs = options.imeis.map(() => options.startMs);
    this.#random = random;
    this.#apis = apis;
    this.#admin = admin;
    this.model = model;
  }

  get side(): AreaApi {
    return pick(this.#random, this.#apis);
  }

  get newestMs(): number {
    return Math.max(...this.#newestMs);
  }

  async send(): Promise<void> {
    const random = this.#random;
    const batch: object[] = [];
    const count = 1 + Math.floor(random() ** 2 * 25);
    const before = this.points.map((points) => points.at(-1)?.atMs);
    let late = 0;
    for (let n = 0; n < count; n++) {
      const device = Math.floor(random() * 2);
      const place = pick<Place>(random, ['in', 'in', 'between', 'out']);
      const newestMs = this.#newestMs[device] as number;
      const knownMs = before[device];
      const isLate = knownMs !== undefined && random() < 0.15;
      const atMs = isLate
        ? knownMs - 1 - Math.floor(random() * HOUR_MS)
        : newestMs + 1_000 * Math.ceil(random() ** 2 * 400) + Math.floor(random() * 2) * 137;
      if (isLate) {
        this.late[device]?.push(atMs);
        late++;
      } else {
        this.#newestMs[device] = atMs;
        this.points[device]?.push({
          atMs,
          inside: place === 'in' || (place === 'between' && this.model.radiusM === LARGE_M),
          isWatched: watches(this.model, this.model.holders[device] as Holder),
          dwellSeconds: this.model.dwellSeconds,
        });
      }
      const latitude = this.#center.lat + PLACES[place];
      batch.push({ imei: this.#imeis[device], recorded_at: atMs, latitude, longitude: this.#center.lng });
    }
    const sent = await this.side.pod.points(batch.toSorted(() => random() - 0.5));
    assert.deepEqual([sent.accepted, sent.late], [count, late]);
  }

  /** One change that decides about points from then on. */
  async change(): Promise<void> {
    const { model } = this;
    const kind = Math.floor(this.#random() * 6);
    if (kind === 0) {
      model.radiusM = model.radiusM === SMALL_M ? LARGE_M : SMALL_M;
      assert.equal((await this.side.patch(this.id, { radius_m: model.radiusM })).status, 200);
    } else if (kind === 1) {
      model.dwellSeconds = pick(this.#random, DWELLS);
      assert.equal((await this.side.patch(this.id, { dwell_seconds: model.dwellSeconds })).status, 200);
    } else if (kind === 2 && model.members.owner) {
      model.isShared = !model.isShared;
      await this.#admin.run(model.isShared ? 'area:share' : 'area:unshare', '--id', String(this.id));
    } else if (kind === 3) {
      await this.#give(Math.floor(this.#random() * 2));
    } else if (kind === 4) {
      await this.#setMember('mate', !model.members.mate);
    } else if (kind === 5 && !model.isShared) {
      await this.#setMember('owner', !model.members.owner);
    } else {
      assert.equal((await this.side.patch(this.id, { name: `Name ${this.#random()}` })).status, 200);
    }
  }

  /** Everything as it must be for the owner to see both devices. */
  async restore(): Promise<void> {
    for (const who of ['owner', 'mate'] as const) await this.#setMember(who, true);
    for (const device of [0, 1]) {
      if (this.model.holders[device] === 'mate') await this.#move(device, 'organization');
    }
  }

  async #give(device: number): Promise<void> {
    const { members, holders } = this.model;
    const holder = holders[device] as Holder;
    if (holder === 'organization') {
      const next = pick<'owner' | 'mate'>(this.#random, ['owner', 'mate']);
      if (members[next]) await this.#move(device, next);
    } else if (members[holder]) {
      await this.#move(device, 'organization');
    }
  }

  async #move(device: number, to: Holder): Promise<void> {
    const from = this.model.holders[device] as Holder;
    const by = to === 'organization' ? from : to;
    await this.#admin.importDevices(by === 'mate' ? MATE : OWNER, [
      { imei: this.#imeis[device], organization: to === 'organization' },
    ]);
    this.model.holders[device] = to;
  }

  async #setMember(who: 'owner' | 'mate', isMember: boolean): Promise<void> {
    if (this.model.members[who] === isMember) return;
    this.model.members[who] = isMember;
    const email = who === 'mate' ? MATE : OWNER;
    const organization = isMember ? 'Haulage' : 'none';
    await this.#admin.run('account:update', '--email', email, '--organization', organization);
  }
}

test(`explanations of ${HISTORIES} histories are what was recorded (seed ${SEED})`, {
  skip: skipWithoutRedis(),
}, async (t) => {
  const { admin, apis } = await startAreaPods(t);
  await admin.account(MATE, { organization: 'Haulage' });
  const random = seededRandom(SEED);
  const seen = new Map<string, number>();
  for (let history = 0; history < HISTORIES; history++) {
    const center = { lat: -60 + (history % 100) * 1.2, lng: -170 + Math.floor(history / 100) * 5 };
    const imeis = [0, 1].map((n) => String(350_000_000_000_000 + 2 * history + n));
    const model: Model = {
      radiusM: SMALL_M,
      dwellSeconds: pick(random, DWELLS),
      isShared: false,
      members: { owner: true, mate: true },
      holders: [
        pick<Holder>(random, ['owner', 'organization']),
        pick<Holder>(random, ['mate', 'organization']),
      ],
    };
    for (const [n, imei] of imeis.entries()) {
      const holder = model.holders[n];
      await admin.importDevices(holder === 'mate' ? MATE : OWNER, [
        { imei, organization: holder === 'organization' },
      ]);
    }
    const startMs = Date.now() - 20 * HOUR_MS - Math.floor(random() * 20 * 24 * HOUR_MS);
    const circle = { name: 'Depot', type: 'circle', center, radius_m: SMALL_M };
    const body = { ...circle, dwell_seconds: model.dwellSeconds };
    const createdMs = Date.now();
    const id = await pick(random, apis).make(body);
    const tested = new History({ id, imeis, center, startMs }, { random, apis, admin }, model);
    for (let round = 0; round < ROUNDS; round++) {
      await tested.send();
      if (random() < 0.6) await tested.change();
    }
    await tested.restore();

    for (let n = 0; n < WINDOWS; n++) {
      const device = n % 2;
      const points = tested.points[device] as KnownPoint[];
      const span = tested.newestMs - startMs;
      const fromMs = n < 2 ? startMs - HOUR_MS : Math.floor(startMs + random() * span);
      const toMs = n < 2 ? Date.now() : Math.floor(fromMs + random() * span);
      const query = `device=${imeis[device]}&from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`;
      const side = tested.side;
      const { status, body: answer, text } = await side.get(`/${id}/explain?${query}&steps=true`);
      const events = await side.get(`/${id}/events?limit=200&${query}`);
      const where = `history ${history}, window ${n} of device ${device}: ${query}`;
      assert.equal(status, 200, text);
      const { verdict, visits, notes, steps } = answer.data;
      const idsOf = (list: { event_ids: number[] }[]) =>
        list.flatMap(({ event_ids }) => event_ids).sort(byNumber);
      const recorded = events.body.data.map((event: { id: number }) => event.id).sort(byNumber);
      assert.deepEqual(idsOf(visits), recorded, where);
      const codes = notes.map(({ code }: { code: string }) => code);
      assert.ok(!codes.includes('not_recorded'), `${where}: ${JSON.stringify(notes)}`);

      const naive = naiveVisits(points, fromMs, toMs);
      const inWindow = points.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
      const isLateThere = (tested.late[device] as number[]).some((atMs) => atMs >= fromMs && atMs <= toMs);
      const isoOf = (ms: number) => new Date(ms).toISOString();
      const of = ['outcome', 'points', 'first_inside_at', 'last_inside_at'];
      assert.deepEqual(
        visits.map((visit: Record<string, unknown>) => of.map((name) => visit[name])),
        naive.map((visit) => [naiveOutcome(visit), visit.points, isoOf(visit.firstMs), isoOf(visit.lastMs)]),
        where,
      );
      const otherwise = inWindow.some(({ isWatched }) => isWatched)
        ? 'never_inside'
        : inWindow.length > 0
          ? 'not_watched'
          : isLateThere || toMs > createdMs
            ? 'no_points'
            : 'area_did_not_exist';
      const expected = naiveVerdict(naive, otherwise);
      assert.equal(verdict, expected, where);
      const evaluated = steps.filter(({ late }: { late: boolean }) => !late);
      assert.deepEqual(
        evaluated.map((step: { recorded_at: string; inside: boolean; decision: string }) => [
          Date.parse(step.recorded_at),
          step.inside,
          step.decision !== 'not_watched',
        ]),
        inWindow.map(({ atMs, inside, isWatched }) => [atMs, inside, isWatched]),
        where,
      );
      assert.equal(codes.includes('late_points_ignored'), isLateThere, where);
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
    }
  }
  assert.ok(seen.size >= 4, `only these verdicts were seen: ${[...seen.keys()].join(', ')}`);
});

const byNumber = (a: number, b: number): number => a - b;
