import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { Stage, type ToldPoint } from './stage.ts';

// Questions that people ask about their geofences, each as it came about, with its answer.

const MATE = 'mate@example.com';
/** A whole hour, two days ago. */
const START_MS = Math.floor((Date.now() - 2 * DAY_MS) / HOUR_MS) * HOUR_MS;
const IN = 0;
const OUT = 5_000;

interface Story {
  readonly name: string;
  readonly startMs?: number;
  /** The device's holder; the owner without it. */
  readonly holder?: 'mate';
  /** The fields of an area that is made, and the points that are sent then. */
  readonly area?: object;
  readonly points?: readonly ToldPoint[];
  /** What happens afterwards, or, without points, all of the story: then it returns the id of the area. */
  readonly tell?: (stage: Stage, areaId: number) => Promise<unknown>;
  /** What is asked about, in seconds. */
  readonly from?: number;
  readonly to?: number;
  readonly verdict: string;
  readonly says: RegExp;
  /** Of the visits. */
  readonly outcomes?: readonly string[];
  readonly notes?: readonly string[];
}

const sent = (...points: readonly ToldPoint[]) => points;
const give = (stage: Stage) =>
  stage.owner.admin.importDevices(MATE, [{ imei: stage.imei, organization: true }]);

const STORIES: readonly Story[] = [
  {
    name: 'It was there! It passed through in 42 s of 2 min',
    area: { dwell_seconds: 120 },
    points: sent([0, OUT], [60, 400], [102, -400], [130, OUT]),
    verdict: 'too_short',
    says: /passed through Depot: 42 s of 2 min inside, so no entry was due/,
    outcomes: ['too_short'],
  },
  {
    name: 'It drove right across, between two points',
    points: sent([0, OUT], [30, 600], [60, -700], [90, -OUT]),
    verdict: 'between_points',
    says: /crossed Depot between two points, at .*:00:30.000Z and .*:01:00.000Z \(30 s apart\)/,
  },
  {
    name: 'It stood at the gate, 3 m outside',
    points: sent([0, OUT], [60, 503], [120, 503], [180, OUT]),
    verdict: 'never_inside',
    says: /never inside Depot: of 4 points the closest was 3\.0 m outside, at .*:01:00/,
  },
  {
    name: 'The only point inside came an hour late',
    points: sent([0, OUT], [3_600, OUT]),
    tell: (stage) => stage.send([60, IN]),
    verdict: 'never_inside',
    says: /; 1 point inside came late and was not evaluated/,
    notes: ['late_points_ignored', 'gap'],
  },
  {
    name: 'The area was drawn after the visit',
    tell: async (stage) => {
      await stage.send([0, OUT], [60, IN], [120, OUT]);
      return stage.area();
    },
    verdict: 'area_did_not_exist',
    says: /Depot was made at .*, after this time/,
  },
  {
    name: 'It was inside, but the area did not exist yet',
    tell: async (stage) => {
      await stage.send([0, OUT], [60, IN]);
      const id = await stage.area();
      await stage.send([120, 530]);
      return id;
    },
    verdict: 'never_inside',
    says: /never inside Depot while it was watched: 1 point inside came when it was not$/,
    notes: ['area_changed'],
  },
  {
    name: 'The minimum stay and then the shape were changed since then',
    area: { dwell_seconds: 120 },
    points: sent([0, 530]),
    tell: async (stage, id) => {
      await stage.api.patch(id, { dwell_seconds: 60 });
      await stage.api.patch(id, { radius_m: 520, dwell_seconds: 90 });
    },
    verdict: 'never_inside',
    says: /of 1 point the closest was 30 m outside/,
    notes: ['dwell_changed', 'area_changed'],
  },
  {
    name: 'The minimum stay was raised while the vehicle was inside',
    area: { dwell_seconds: 120 },
    points: sent([0, OUT], [60, IN]),
    tell: async (stage, id) => {
      await stage.api.patch(id, { dwell_seconds: 600 });
      await stage.send([240, IN]);
    },
    verdict: 'inside_pending',
    says: /for 3 min of 10 min up to its last point/,
    outcomes: ['pending'],
    notes: ['dwell_changed'],
  },
  {
    name: 'The minimum stay was lowered while the vehicle was inside',
    area: { dwell_seconds: 600 },
    points: sent([0, OUT], [60, IN], [120, IN]),
    tell: async (stage, id) => {
      await stage.api.patch(id, { dwell_seconds: 30 });
      await stage.send([180, IN]);
    },
    verdict: 'entered',
    says: /after 30 s inside: it was there since .*:01:00.000Z, 2 min/,
    outcomes: ['entry'],
    notes: ['dwell_changed'],
  },
  {
    name: 'The device was the private one of another member then',
    holder: 'mate',
    points: sent([0, OUT], [60, IN], [120, OUT]),
    tell: give,
    verdict: 'not_watched',
    says: /did not watch .* when its 3 points came: the two belonged to different owners then/,
    notes: ['area_changed'],
  },
  {
    name: 'The device was given to the organization while it was inside',
    holder: 'mate',
    points: sent([0, OUT], [60, IN]),
    tell: async (stage) => {
      await give(stage);
      await stage.send([120, IN]);
    },
    verdict: 'entered',
    says: /entered Depot at .*:02:00.000Z/,
    outcomes: ['entry'],
    notes: ['area_changed'],
  },
  {
    name: 'It was two months ago, and the plan has 30 days',
    startMs: START_MS - 58 * DAY_MS,
    tell: async (stage) => {
      const id = await stage.area();
      await stage.makeOld(id);
      await stage.send([0, OUT], [60, IN], [120, OUT]);
      return id;
    },
    verdict: 'no_points',
    says: /no point .* is stored in this time/,
    notes: ['history_trimmed'],
  },
  {
    name: 'There is an exit and no entry',
    points: sent([0, OUT], [60, IN], [600, IN], [660, OUT]),
    from: 300,
    verdict: 'left',
    says: /left Depot at .*:11:00.000Z: it had been inside since .*:01:00.000Z, 10 min/,
    outcomes: ['entry_and_exit'],
  },
  {
    name: 'Why did it fire at once? There is no minimum stay',
    points: sent([0, OUT], [60, IN]),
    verdict: 'entered',
    says: /entered Depot at .*:01:00.000Z$/,
    outcomes: ['entry'],
  },
  {
    name: 'Why did it fire so late? Points are ten minutes apart',
    area: { dwell_seconds: 120 },
    points: sent([0, OUT], [60, IN], [660, IN]),
    verdict: 'entered',
    says: /entered Depot at .*:11:00.000Z, the first point after 2 min inside: .*, 10 min/,
    outcomes: ['entry'],
  },
  {
    name: 'It is inside now, and nothing came yet',
    area: { dwell_seconds: 300 },
    points: sent([0, OUT], [60, IN], [180, IN]),
    verdict: 'inside_pending',
    says: /2 min of 5 min up to its last point; the entry comes with its first point inside after that/,
    outcomes: ['pending'],
  },
  {
    // The area of the story is made now, and its day is over.
    name: 'The tracker was off that day',
    points: sent([0, OUT], [50_000, OUT]),
    from: 100,
    to: 49_000,
    verdict: 'area_did_not_exist',
    says: /after this time/,
  },
  {
    name: 'The tracker says nothing at all',
    startMs: Date.now() - 600_000,
    points: [],
    verdict: 'no_points',
    says: /^no point of .* is stored in this time$/,
  },
  {
    name: 'The tracker slept for 40 minutes while it must have been there',
    points: sent([0, OUT], [2_400, OUT + 200]),
    verdict: 'never_inside',
    says: /the closest was 4\.5 km outside/,
    notes: ['gap'],
  },
  {
    name: 'Why an exit? It did not move. The circle was made smaller',
    points: sent([0, OUT], [60, 400], [120, 400]),
    tell: async (stage, id) => {
      await stage.api.patch(id, { radius_m: 200 });
      await stage.send([180, 400]);
    },
    verdict: 'left',
    says: /left Depot at .*:03:00.000Z/,
    outcomes: ['entry_and_exit'],
    notes: ['area_changed'],
  },
  {
    name: 'It stood on the edge all night, and the signal danced',
    area: { dwell_seconds: 120 },
    points: sent([0, 510], [60, 490], [90, 510], [120, 490], [180, 495], [210, 510], [240, 490], [250, 505]),
    verdict: 'too_short',
    says: /1 min of 2 min inside in the longest of 3 visits/,
    outcomes: ['too_short', 'too_short', 'too_short'],
  },
  {
    name: 'The points are from before it was stored how they came',
    area: { dwell_seconds: 120 },
    points: sent([0, OUT], [60, IN], [180, IN], [240, OUT]),
    tell: async (stage, id) => {
      await stage.send([120, OUT]);
      await stage.owner.sql`
        update position set received_at = null, late = null
        where device_id = (select id from device where imei = ${stage.imei})`;
      await stage.makeOld(id);
    },
    verdict: 'left',
    says: /left Depot at .*:04:00.000Z/,
    outcomes: ['entry_and_exit'],
    notes: ['not_recorded', 'not_recorded'],
  },
  {
    name: 'The area is older than what is kept of its past',
    points: sent([0, OUT], [60, IN], [120, OUT]),
    tell: async ({ owner: { sql } }, id) => {
      await sql`update area set created_at = '2020-01-01' where id = ${id}`;
      await sql`update area_revision set valid_from = clock_timestamp() where area_id = ${id}`;
    },
    verdict: 'left',
    says: /left Depot at .*:02:00.000Z/,
    outcomes: ['entry_and_exit'],
    notes: ['not_recorded'],
  },
  {
    name: 'Entered in the morning, passed through at noon: what of the noon?',
    area: { dwell_seconds: 60 },
    points: sent([0, OUT], [60, IN], [120, IN], [180, OUT], [600, IN], [630, IN], [660, OUT]),
    from: 300,
    verdict: 'too_short',
    says: /30 s of 1 min/,
    outcomes: ['too_short'],
  },
  {
    name: 'It has been there for hours and nothing comes: it came before',
    points: sent([0, OUT], [60, IN], [600, IN], [1_200, IN]),
    from: 300,
    verdict: 'entered',
    says: /was inside Depot from .*:01:00.000Z on; the entry was reported before this time/,
    outcomes: ['entry'],
  },
  {
    name: 'Only late points came',
    points: sent([7_000, OUT]),
    tell: (stage) => stage.send([60, IN], [120, IN]),
    to: 3_600,
    verdict: 'no_points',
    says: /2 points of .* came late and were not evaluated, and there is no other/,
    notes: ['late_points_ignored'],
  },
  {
    name: 'It was asked about too early a time',
    area: { dwell_seconds: 120 },
    points: sent([0, OUT], [60, IN], [120, IN], [180, IN]),
    to: 150,
    verdict: 'inside_pending',
    says: /1 min of 2 min/,
    outcomes: ['pending'],
  },
];

const owner = ownerPod({
  prepare: async ({ admin }) => {
    await admin.run('account:update', '--email', 'owner@example.com', '--organization', 'Haulage');
    await admin.account(MATE, { organization: 'Haulage' });
    for (const [email, holder] of [
      ['owner@example.com', undefined],
      [MATE, 'mate'],
    ] as const) {
      const devices = STORIES.flatMap((story, n) =>
        story.holder === holder ? [{ imei: String(350_000_000_000_000 + n), name: `Van ${n}` }] : [],
      );
      await admin.importDevices(email, devices);
    }
  },
});

describe('why did it, or did it not?', () => {
  for (const [n, story] of STORIES.entries()) {
    test(story.name, async () => {
      const { points, from, to, notes: expectedNotes = [], outcomes = [] } = story;
      const isTrimmed = expectedNotes.includes('history_trimmed');
      const stage = new Stage(owner, n, story.startMs ?? START_MS);
      let areaId = points === undefined ? 0 : await stage.area(story.area);
      if (points !== undefined) await stage.send(...points);
      const told = await story.tell?.(stage, areaId);
      if (points === undefined) areaId = told as number;
      if (isTrimmed)
        await owner.admin.run('account:update', '--email', 'owner@example.com', '--plan', 'basic');
      const { status, body, text } = await stage.ask(areaId, from, to);
      assert.equal(status, 200, text);
      const { verdict, message, visits, notes } = body.data;
      assert.equal(verdict, story.verdict, text);
      assert.match(message, story.says);
      const of = (list: Record<string, unknown>[], name: string) => list.map((each) => each[name]);
      assert.deepEqual(of(visits, 'outcome'), outcomes);
      assert.deepEqual(of(notes, 'code'), expectedNotes, JSON.stringify(notes));
      if (!isTrimmed)
        assert.deepEqual(of(visits, 'event_ids').flat(), await stage.eventIds(areaId, from, to));
      else await owner.admin.run('account:update', '--email', 'owner@example.com', '--plan', 'pro');
    });
  }
});
