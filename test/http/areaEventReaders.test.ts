import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { areaApi } from '../support/areas.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const DEPOT = { type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 300 };

/** Anna and Ben share an organization, Dario has another one, Carla has none. */
const ORGANIZATIONS: Readonly<Record<string, string | null>> = {
  anna: 'Haulage',
  ben: 'Haulage',
  carla: null,
  dario: 'Taxi',
};
const PEOPLE = Object.keys(ORGANIZATIONS);
const membersOf = (organization: string): string[] =>
  PEOPLE.filter((name) => ORGANIZATIONS[name] === organization);

interface Thing {
  readonly owner: string;
  readonly shared: boolean;
}

const THINGS: readonly Thing[] = PEOPLE.flatMap((owner) =>
  (ORGANIZATIONS[owner] === null ? [false] : [false, true]).map((shared) => ({ owner, shared })),
);

/** The accounts that a thing belongs to, by the words of the document. */
const viewers = ({ owner, shared }: Thing): string[] =>
  shared ? membersOf(ORGANIZATIONS[owner] as string) : [owner];

/** Who reads what happens between an area and a device; nobody when the area does not watch the device. */
function readers(area: Thing, device: Thing): string[] {
  const common = viewers(area).filter((name) => viewers(device).includes(name));
  if (common.length === 0) return [];
  if (area.shared && device.shared) return common;
  return [area.shared ? device.owner : area.owner];
}

describe('between every kind of area and every kind of device', () => {
  const nameOf = ({ owner, shared }: Thing): string => `${owner}${shared ? ' shares' : ''}`;
  const imeiOf = (device: Thing): string => String(350_000_000_000_000 + THINGS.indexOf(device));
  const areaIds = new Map<Thing, number>();
  const keys = new Map<string, string>();
  let pod: Pod;

  before(async () => {
    const { url } = await createDatabase();
    const admin = adminOf(url);
    for (const [name, organization] of Object.entries(ORGANIZATIONS)) {
      await admin.account(`${name}@example.com`, organization === null ? {} : { organization });
      keys.set(name, (await admin.key(`${name}@example.com`)).key);
    }
    for (const device of THINGS) {
      const options = device.shared ? ['--organization'] : [];
      await admin.device(`${device.owner}@example.com`, imeiOf(device), ...options);
    }
    pod = await startPod(url);
    for (const area of THINGS) {
      const id = await areaApi(pod, keys.get(area.owner) ?? '').make({ ...DEPOT, name: nameOf(area) });
      areaIds.set(area, id);
      if (area.shared) await admin.run('area:share', '--id', String(id));
    }
    await pod.points(
      THINGS.map((device) => ({
        imei: imeiOf(device),
        recorded_at: Date.now(),
        latitude: 41.9,
        longitude: 12.5,
      })),
    );
  });

  after(() => pod.stop());

  const found = async (reader: string, path: string) => (await pod.get(path, keys.get(reader))).body.data;

  for (const reader of PEOPLE) {
    test(`${reader} reads exactly the events that are theirs`, async () => {
      const expected = THINGS.flatMap((area) =>
        THINGS.filter((device) => readers(area, device).includes(reader)).map(
          (device) => `${nameOf(area)}: ${imeiOf(device)}`,
        ),
      );
      const events: { data: { areaName: string }; device_imei: string }[] = await found(
        reader,
        '/api/v3/events?type=geofence_entry&limit=200',
      );
      assert.deepEqual(
        events.map(({ data, device_imei: imei }) => `${data.areaName}: ${imei}`).sort(),
        expected.sort(),
      );
    });

    test(`${reader} reads them area by area, and no other area`, async () => {
      for (const area of THINGS) {
        const events = await found(reader, `/api/v3/areas/${areaIds.get(area)}/events`);
        if (!viewers(area).includes(reader)) {
          assert.equal(events, undefined);
          continue;
        }
        assert.deepEqual(
          events.map(({ device }: { device: string }) => device).sort(),
          THINGS.filter((device) => readers(area, device).includes(reader)).map(imeiOf),
        );
      }
    });
  }
});
