import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { Stage } from './stage.ts';

// Questions that people ask about their geofences, each as it came about, with its answer.

const MATE = 'mate@example.com';
/** A whole hour, two days ago. */
const START_MS = Math.floor((Date.now() - 2 * DAY_MS) / HOUR_MS) * HOUR_MS;
const IN = 0;
const OUT = 5_000;

/** What is asked about at the end of a story. */
interface Question {
  readonly areaId: number;
  readonly from?: number;
  readonly to?: number;
}

interface Story {
  readonly name: string;
  readonly startMs?: number;
  /** The device's holder; the owner without it. */
  readonly holder?: 'mate';
  readonly tell: (stage: Stage) => Promise<number | Question>;
  readonly verdict: string;
  readonly says: RegExp;
  /** Of the visits. */
  readonly outcomes?: readonly string[];
  readonly notes?: readonly string[];
  /** Metres outside of the closest point, within a metre; null: there is none. */
  readonly closestM?: number | null;
}

const STORIES: readonly Story[] = [
  {
    name: 'It was there! It passed through in 42 s of 2 min',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([0, OUT], [60, 400], [102, -400], [130, OUT]);
      return id;
    },
    verdict: 'too_short',
    says: /passed through Depot: 42 s of 2 min inside, so no entry was due/,
    outcomes: ['too_short'],
  },
  {
    name: 'It drove right across, between two points',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [30, 600], [60, -700], [90, -OUT]);
      return id;
    },
    verdict: 'between_points',
    says: /crossed Depot between two points, at .*:00:30.000Z and .*:01:00.000Z \(30 s apart\)/,
  },
  {
    name: 'It stood at the gate, 3 m outside',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, 503], [120, 503], [180, OUT]);
      return id;
    },
    verdict: 'never_inside',
    says: /never inside Depot: of 4 points the closest was 3\.0 m outside, at .*:01:00/,
  },
  {
    name: 'The only point inside came an hour late',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [3_600, OUT]);
      await stage.send([60, IN]);
      return id;
    },
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
    name: 'Nothing was sent, and the area was drawn later',
    tell: (stage) => stage.area(),
    verdict: 'area_did_not_exist',
    says: /was made at/,
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
    closestM: 30,
  },
  {
    name: 'Only the minimum stay was changed since then',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([0, OUT], [60, 530]);
      await stage.api.patch(id, { dwell_seconds: 60 });
      return id;
    },
    verdict: 'never_inside',
    says: /of 2 points the closest was 30 m outside/,
    notes: ['dwell_changed'],
    closestM: 30,
  },
  {
    name: 'The minimum stay and then the shape were changed since then',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([0, 530]);
      await stage.api.patch(id, { dwell_seconds: 60 });
      await stage.api.patch(id, { radius_m: 520, dwell_seconds: 90 });
      return id;
    },
    verdict: 'never_inside',
    says: /of 1 point the closest was 30 m outside/,
    notes: ['dwell_changed', 'area_changed'],
  },
  {
    name: 'It crossed the area in a day and a half without a point',
    startMs: START_MS - 2 * 86_400_000,
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, 600]);
      await stage.send([129_600, -700]);
      return { areaId: id, from: 0, to: 129_600 };
    },
    verdict: 'between_points',
    says: /\(36 h apart\)/,
    notes: ['gap'],
  },
  {
    name: 'It crossed the area in a second',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, 600], [1, -700]);
      return id;
    },
    verdict: 'between_points',
    says: /\(1 s apart\)/,
  },
  {
    name: 'The minimum stay was raised while the vehicle was inside',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([0, OUT], [60, IN]);
      await stage.api.patch(id, { dwell_seconds: 600 });
      await stage.send([240, IN]);
      return id;
    },
    verdict: 'inside_pending',
    says: /for 3 min of 10 min up to its last point/,
    outcomes: ['pending'],
    notes: ['dwell_changed'],
  },
  {
    name: 'The minimum stay was lowered while the vehicle was inside',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 600 });
      await stage.send([0, OUT], [60, IN], [120, IN]);
      await stage.api.patch(id, { dwell_seconds: 30 });
      await stage.send([180, IN]);
      return id;
    },
    verdict: 'entered',
    says: /after 30 s inside: it was there since .*:01:00.000Z, 2 min/,
    outcomes: ['entry'],
    notes: ['dwell_changed'],
  },
  {
    name: 'The device was the private one of another member then',
    holder: 'mate',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, IN], [120, OUT]);
      await stage.owner.admin.importDevices(MATE, [{ imei: stage.imei, organization: true }]);
      return id;
    },
    verdict: 'not_watched',
    says: /did not watch .* when its 3 points came: the two belonged to different owners then/,
    notes: ['area_changed'],
  },
  {
    name: 'The device was given to the organization while it was inside',
    holder: 'mate',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, IN]);
      await stage.owner.admin.importDevices(MATE, [{ imei: stage.imei, organization: true }]);
      await stage.send([120, IN]);
      return id;
    },
    verdict: 'entered',
    says: /entered Depot at .*:02:00.000Z/,
    outcomes: ['entry'],
    notes: ['area_changed'],
  },
  {
    name: 'It was inside while it was a private device of somebody else, and left as ours',
    holder: 'mate',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, IN]);
      await stage.owner.admin.importDevices(MATE, [{ imei: stage.imei, organization: true }]);
      await stage.send([120, OUT]);
      return id;
    },
    verdict: 'never_inside',
    says: /never inside Depot while it was watched: 1 point inside came when it was not$/,
    notes: ['area_changed'],
  },
  {
    name: 'The clock of the tracker jumped two hours ahead, and back',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [7_200, OUT]);
      await stage.send([60, IN], [120, IN]);
      return id;
    },
    verdict: 'never_inside',
    says: /2 points inside came late and were not evaluated/,
    notes: ['late_points_ignored', 'gap'],
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
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, IN], [600, IN], [660, OUT]);
      return { areaId: id, from: 300 };
    },
    verdict: 'left',
    says: /left Depot at .*:11:00.000Z: it had been inside since .*:01:00.000Z, 10 min/,
    outcomes: ['entry_and_exit'],
  },
  {
    name: 'Two areas, one fired: this one did not',
    tell: async (stage) => {
      await stage.area({ name: 'Yard' });
      const id = await stage.area({ dwell_seconds: 300 });
      await stage.send([0, OUT], [60, IN], [180, IN], [240, OUT]);
      return id;
    },
    verdict: 'too_short',
    says: /2 min of 5 min/,
    outcomes: ['too_short'],
  },
  {
    name: 'Two areas, one fired: this one',
    tell: async (stage) => {
      const id = await stage.area({ name: 'Yard' });
      await stage.area({ dwell_seconds: 300 });
      await stage.send([0, OUT], [60, IN], [180, IN], [240, OUT]);
      return id;
    },
    verdict: 'left',
    says: /left Yard/,
    outcomes: ['entry_and_exit'],
  },
  {
    name: 'Why did it fire at once? There is no minimum stay',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, IN]);
      return id;
    },
    verdict: 'entered',
    says: /entered Depot at .*:01:00.000Z$/,
    outcomes: ['entry'],
  },
  {
    name: 'Why did it fire so late? Points are ten minutes apart',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([0, OUT], [60, IN], [660, IN]);
      return id;
    },
    verdict: 'entered',
    says: /entered Depot at .*:11:00.000Z, the first point after 2 min inside: .*, 10 min/,
    outcomes: ['entry'],
  },
  {
    name: 'It is inside now, and nothing came yet',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 300 });
      await stage.send([0, OUT], [60, IN], [180, IN]);
      return id;
    },
    verdict: 'inside_pending',
    says: /2 min of 5 min up to its last point; the entry comes with its first point inside after that/,
    outcomes: ['pending'],
  },
  {
    name: 'The tracker was off that day',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [50_000, OUT]);
      return { areaId: id, from: 100, to: 49_000 };
    },
    // The area of the story is made now, and its day is over.
    verdict: 'area_did_not_exist',
    says: /after this time/,
  },
  {
    name: 'The tracker says nothing at all',
    startMs: Date.now() - 600_000,
    tell: (stage) => stage.area(),
    verdict: 'no_points',
    says: /^no point of .* is stored in this time$/,
  },
  {
    name: 'The tracker slept for 40 minutes while it must have been there',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [2_400, OUT + 200]);
      return id;
    },
    verdict: 'never_inside',
    says: /the closest was 4\.5 km outside/,
    notes: ['gap'],
  },
  {
    name: 'It touched the boundary',
    tell: async (stage) => {
      const { lat, lng } = stage.center;
      const corners = [
        [0, 0],
        [0.01, 0],
        [0.01, 0.01],
        [0, 0.01],
      ] as const;
      const points = corners.map(([y, x]) => ({ lat: lat + y, lng: lng + x }));
      const id = await stage.area({ type: 'polygon', points });
      await stage.send([0, -OUT], [60, IN]);
      return id;
    },
    verdict: 'entered',
    says: /entered/,
    outcomes: ['entry'],
  },
  {
    name: 'Why an exit? It did not move. The circle was made smaller',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, 400], [120, 400]);
      await stage.api.patch(id, { radius_m: 200 });
      await stage.send([180, 400]);
      return id;
    },
    verdict: 'left',
    says: /left Depot at .*:03:00.000Z/,
    outcomes: ['entry_and_exit'],
    notes: ['area_changed'],
  },
  {
    name: 'It is in the circle on the map. The circle was somewhere else then',
    tell: async (stage) => {
      const id = await stage.area({ center: stage.north(-3_000) });
      await stage.send([0, OUT], [60, IN], [120, OUT]);
      await stage.api.patch(id, { center: stage.center });
      return id;
    },
    verdict: 'never_inside',
    says: /the closest was 2\.5 km outside/,
    notes: ['area_changed'],
  },
  {
    name: 'It stood on the edge all night, and the signal danced',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send(
        [0, 510],
        [60, 490],
        [90, 510],
        [120, 490],
        [180, 495],
        [210, 510],
        [240, 490],
        [250, 505],
      );
      return id;
    },
    verdict: 'too_short',
    says: /1 min of 2 min inside in the longest of 3 visits/,
    outcomes: ['too_short', 'too_short', 'too_short'],
  },
  {
    name: 'All points came at once in the evening, in order: nothing is lost',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([300, OUT], [60, IN], [180, IN], [0, OUT]);
      return id;
    },
    verdict: 'left',
    says: /it had been inside since .*:01:00.000Z, 4 min/,
    outcomes: ['entry_and_exit'],
  },
  {
    name: 'The tracker sent everything twice',
    tell: async (stage) => {
      const id = await stage.area();
      const points = [
        [0, OUT],
        [60, IN],
        [120, OUT],
      ] as const;
      await stage.send(...points);
      await stage.send(...points);
      return id;
    },
    verdict: 'left',
    says: /, 1 min$/,
    outcomes: ['entry_and_exit'],
  },
  {
    name: 'The points are from before it was stored how they came',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([0, OUT], [60, IN], [180, IN], [240, OUT]);
      await stage.send([120, OUT]);
      await stage.owner.sql`
        update position set received_at = null, late = null
        where device_id = (select id from device where imei = ${stage.imei})`;
      await stage.makeOld(id);
      return id;
    },
    verdict: 'left',
    says: /left Depot at .*:04:00.000Z/,
    outcomes: ['entry_and_exit'],
    notes: ['not_recorded', 'not_recorded'],
  },
  {
    name: 'It drives beside the road, 30 m off, and the margin is 50 m',
    tell: async (stage) => {
      const { lat, lng } = stage.center;
      const points = [
        { lat, lng: lng - 0.1 },
        { lat, lng: lng + 0.1 },
      ];
      const id = await stage.area({ type: 'polyline', points, buffer_m: 50 });
      await stage.send([0, OUT], [60, 30], [120, OUT]);
      return id;
    },
    verdict: 'left',
    says: /left Depot/,
    outcomes: ['entry_and_exit'],
  },
  {
    name: 'Entered in the morning, passed through at noon: what of the noon?',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 60 });
      await stage.send([0, OUT], [60, IN], [120, IN], [180, OUT], [600, IN], [630, IN], [660, OUT]);
      return { areaId: id, from: 300 };
    },
    verdict: 'too_short',
    says: /30 s of 1 min/,
    outcomes: ['too_short'],
  },
  {
    name: 'It has been there for hours and nothing comes: it came before',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([0, OUT], [60, IN], [600, IN], [1_200, IN]);
      return { areaId: id, from: 300 };
    },
    verdict: 'entered',
    says: /was inside Depot from .*:01:00.000Z on; the entry was reported before this time/,
    outcomes: ['entry'],
  },
  {
    name: 'Only late points came',
    tell: async (stage) => {
      const id = await stage.area();
      await stage.send([7_000, OUT]);
      await stage.send([60, IN], [120, IN]);
      return { areaId: id, to: 3_600 };
    },
    verdict: 'no_points',
    says: /2 points of .* came late and were not evaluated, and there is no other/,
    notes: ['late_points_ignored'],
  },
  {
    name: 'It was asked about too early a time',
    tell: async (stage) => {
      const id = await stage.area({ dwell_seconds: 120 });
      await stage.send([0, OUT], [60, IN], [120, IN], [180, IN]);
      return { areaId: id, to: 150 };
    },
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
  before(() => assert.ok(STORIES.length >= 30));
  for (const [n, story] of STORIES.entries()) {
    test(story.name, async () => {
      const isTrimmed = story.notes?.includes('history_trimmed') === true;
      const stage = new Stage(owner, n, story.startMs ?? START_MS);
      const asked = await story.tell(stage);
      const { areaId, from, to } = typeof asked === 'number' ? { areaId: asked } : asked;
      if (isTrimmed)
        await owner.admin.run('account:update', '--email', 'owner@example.com', '--plan', 'basic');
      const { status, body, text } = await stage.ask(areaId, from, to);
      assert.equal(status, 200, text);
      const { verdict, message, visits, notes, closest } = body.data;
      if (story.closestM === null) assert.equal(closest, null);
      else if (story.closestM !== undefined) {
        assert.ok(Math.abs(closest.distance_m - story.closestM) < 1, `closest: ${closest.distance_m} m`);
      }
      assert.equal(verdict, story.verdict, text);
      assert.match(message, story.says);
      assert.deepEqual(
        visits.map(({ outcome }: { outcome: string }) => outcome),
        story.outcomes ?? [],
      );
      assert.deepEqual(
        notes.map(({ code }: { code: string }) => code),
        story.notes ?? [],
        JSON.stringify(notes),
      );
      const ids = visits.flatMap(({ event_ids: each }: { event_ids: number[] }) => each);
      if (!isTrimmed) assert.deepEqual(ids, await stage.eventIds(areaId, from, to));
      else await owner.admin.run('account:update', '--email', 'owner@example.com', '--plan', 'pro');
    });
  }
});
