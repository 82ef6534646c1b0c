import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../support/seededRandom.ts';
import { waitFor } from '../support/waitFor.ts';
import { checkRecord } from './checkRecord.ts';
import type { Client, LateWrites, Made } from './clients.ts';
import { type FaultOptions, type Faults, faultsOf } from './faults.ts';
import { followPages, followStream } from './followers.ts';
import { poll } from './pollers.ts';
import type { Rule, RunRecord } from './record.ts';
import { ask, Recorder } from './recorder.ts';
import { readRest } from './restState.ts';
import { type Machines, type SimulatedPod, type Site, startSite } from './site.ts';
import { makeWorld, type World } from './world.ts';
import { administer, drive, moveArea, probe } from './writers.ts';

export interface RunOptions extends FaultOptions {
  readonly seed: number;
  /** Of each pod: the folders of the versions that its processes run by turns. */
  readonly versions: readonly (readonly string[])[];
  readonly forMs: number;
  /** So many writes are made before the first fault, of which a pod hears late. */
  readonly lateWrites: number;
  /** So many drivers send one batch each that makes more events than the service makes deliveries for at once. */
  readonly longBatches: number;
}

export interface Run {
  readonly record: RunRecord;
  readonly faults: Faults['told'];
  readonly site: Site;
  /** How long it took until clients worked, until all was well again, and then until all had come to rest. */
  readonly took: { readonly startedMs: number; readonly harmedMs: number; readonly restedMs: number };
}

/** What has come to rest changes no more for so long. */
const STUCK_MS = 45_000;
const LOOK_EVERY_MS = 1_000;
const LATE_LOOK_MS = 50;
const POLLERS = 3;
const FEEDS = ['events', 'devices', 'points'] as const;
/** Feeds that the stream has. */
const OF_STREAM = 2;

/** Lets clients work on a site that is harmed, then waits until everything has come to rest. */
export async function simulate(t: TestContext, machines: Machines, options: RunOptions): Promise<Run> {
  const { seed, versions, forMs } = options;
  const random = seededRandom(seed);
  const lap = stopwatch();
  const site = await startSite(t, machines, `run_${seed}`, versions);
  await Promise.all(site.pods.map((pod) => pod.start()));
  const world = await makeWorld(t, site, random);
  const faults = faultsOf(site, world, seededRandom(Math.floor(random() * 2 ** 32)), options);
  const crew = new Crew({ site, world, recorder: new Recorder(), random });
  try {
    await crew.follow();
    const startedMs = lap();
    crew.write(options);
    await crew.haveWrittenLate();
    const harming = faults.run();
    await Promise.race([sleep(forMs), crew.running, harming]);
    faults.stop();
    await harming;
    world.receivers.heal();
    await crew.stopWriting();
    const harmedMs = lap();
    const record = await whenAtRest(() => recordOf(crew, faults), crew);
    await crew.stopFollowing();
    return { record, faults: faults.told, site, took: { startedMs, harmedMs, restedMs: lap() } };
  } finally {
    faults.stop();
    await crew.abandon();
  }
}

/** Each call returns the time since the one before. */
function stopwatch(): () => number {
  let sinceMs = performance.now();
  return () => {
    const nowMs = performance.now();
    const tookMs = nowMs - sinceMs;
    sinceMs = nowMs;
    return tookMs;
  };
}

async function recordOf({ site, world, recorder }: Ground, { losses }: Faults): Promise<RunRecord> {
  return {
    processes: site.processes,
    losses,
    calls: [...world.writes, ...recorder.calls],
    deliveries: world.receivers.deliveries(),
    fixedAreas: world.fixedAreas,
    movingAreas: world.movingAreas,
    rest: await readRest(site, world),
  };
}

type Ground = Omit<Client, 'isOver' | 'isAbandoned' | 'late'>;

/** Everybody who calls. */
class Crew implements Ground {
  readonly site: Site;
  readonly world: World;
  readonly recorder: Recorder;
  readonly random: () => number;
  #areWritersOver = false;
  #areFollowersOver = false;
  #isAbandoned = false;
  readonly #late: LateWrites = { left: 0, ended: Promise.resolve() };
  #writing: Promise<unknown> = Promise.resolve();
  #following: Promise<unknown> = Promise.resolve();

  constructor({ site, world, recorder, random }: Ground) {
    this.site = site;
    this.world = world;
    this.recorder = recorder;
    this.random = random;
  }

  #client(isOver: () => boolean): Client {
    const { site, world, recorder } = this;
    const random = seededRandom(Math.floor(this.random() * 2 ** 32));
    return { site, world, recorder, random, isOver, isAbandoned: () => this.#isAbandoned, late: this.#late };
  }

  /** Begins to follow every feed, and waits until all have begun: who has no cursor begins with what comes from then on. */
  async follow(): Promise<void> {
    const follower = () => this.#client(() => this.#areFollowersOver);
    this.#following = Promise.all([
      ...FEEDS.map((feed) => followPages(follower(), feed)),
      followStream(follower()),
    ]);
    const begun = (): number =>
      new Set(
        this.recorder.calls.flatMap((call) =>
          call.kind === 'page' && call.status === 200 ? [`${call.feed} ${call.follower}`] : [],
        ),
      ).size;
    await Promise.race([waitFor(() => begun() === FEEDS.length + OF_STREAM), this.#following]);
  }

  /** Begins to write and to poll. */
  write({ lateWrites, longBatches }: Pick<RunOptions, 'lateWrites' | 'longBatches'>): void {
    this.#late.left = lateWrites;
    const writer = () => this.#client(() => this.#areWritersOver);
    const { cars, movingAreas } = this.world;
    const made: Made = { keys: [], imeis: [] };
    this.#writing = Promise.all([
      ...cars.map((own, n) => drive(writer(), own, n < longBatches)),
      ...movingAreas.flatMap((area) => [probe(writer(), area), moveArea(writer(), area)]),
      administer(writer(), made),
      ...Array.from({ length: POLLERS }, () => poll(writer(), made)),
    ]);
  }

  /** Settles when as many pods as wanted have heard late of a write. */
  async haveWrittenLate(): Promise<void> {
    const looking = async (): Promise<void> => {
      while (this.#late.left > 0 && !this.#isAbandoned) await sleep(LATE_LOOK_MS);
    };
    await Promise.race([looking(), this.running]);
  }

  /** Settles only when a client fails. */
  get running(): Promise<unknown> {
    return Promise.race([this.#writing, this.#following]);
  }

  async stopWriting(): Promise<void> {
    this.#areWritersOver = true;
    await this.#writing;
  }

  async stopFollowing(): Promise<void> {
    this.#areFollowersOver = true;
    await this.#following;
  }

  /** Ends all who still work, whatever state the site is in. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    await Promise.allSettled([this.stopWriting(), this.stopFollowing()]);
  }
}

/** What may be so for a while: what is under way has yet to arrive. */
const HEALS: readonly Rule[] = [
  'a feed has no gap',
  'a webhook is delivered at least once',
  'all pods show the same in the end',
  'nothing is stored that nobody sent',
];

/** The record once nothing is missing any more, or nothing has come for a long time. */
async function whenAtRest(recordNow: () => Promise<RunRecord>, ground: Ground): Promise<RunRecord> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let sinceMs = performance.now(); ; await sleep(LOOK_EVERY_MS)) {
    const record = await recordNow();
    const missing = checkRecord(record).filter(({ rule }) => HEALS.includes(rule)).length;
    if (missing === 0 || performance.now() - sinceMs > STUCK_MS) return record;
    if (missing < fewest) sinceMs = performance.now();
    fewest = Math.min(fewest, missing);
    await sendAgain(ground);
  }
}

/** As an owner does whose receivers are well again. */
async function sendAgain({ site: { pods }, world: { endpoints, keys } }: Ground): Promise<void> {
  for (const { id } of endpoints)
    await ask(pods[0] as SimulatedPod, 'api', `/api/webhooks/${id}/replay`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-API-Key': keys.owner },
      body: JSON.stringify({ status: ['exhausted'] }),
    });
}
