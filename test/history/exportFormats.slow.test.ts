import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { zstdDecompressSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { memoryPages, validateXML } from 'xmllint-wasm';
import { type ExportFormat, encoderOf } from '../../src/history/exportFormats.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { type ExportPoint, fileOf, pageOf } from '../support/history/pages.ts';
import { runs } from '../support/torture.ts';
import { importTool, skipWithoutTools } from '../tools/tools.ts';

const IMEI = '350000000000001';
const START_MS = Date.UTC(2026, 2, 28, 21);

const oneOf = (odd: readonly number[], min: number, max: number) =>
  fc.oneof(fc.constantFrom(...odd), fc.double({ min, max, noNaN: true }));
const ANY_POINT = fc.record({
  stepMs: fc.constantFrom(1, 999, 10_000, 600_000, 600_001),
  lat: oneOf([-90, 90, -0, 1e-300, -1e-7], -90, 90),
  lng: oneOf([-180, 180, 1e-9, 12.123_456_789_012_34], -180, 180),
  altitudeM: oneOf([-0, -430.5, 1e22, 1e-10], -1e4, 1e5),
  speedKmh: oneOf([0, 1e-300, 4.9], 0, 1e3),
  heading: oneOf([0, 360, 359.9], 0, 360),
  satellites: fc.integer({ min: 0, max: 99 }),
  odometerKm: fc.option(oneOf([0, 1e21, 48_211.4], 0, 1e7)),
});
const ANY_POINTS = fc.array(ANY_POINT, { maxLength: 40 }).map((steps) => {
  let ms = START_MS;
  return steps.map(({ stepMs, ...point }): ExportPoint => {
    ms += stepMs;
    return { recordedAtMs: ms, ...point };
  });
});
/** Its names stand in the order of the CSV. */
const ODD: ExportPoint = {
  ...{
    recordedAtMs: START_MS,
    lat: 1,
    lng: 2,
    altitudeM: 3,
    speedKmh: 4,
    heading: 5,
    satellites: 6,
    odometerKm: 7,
  },
};
const PAGE = fc.integer({ min: 1, max: 41 });

const file = (format: ExportFormat, points: readonly ExportPoint[], pagePoints = 7, trackName = '') =>
  fileOf(encoderOf(format, trackName), [[IMEI, points]], pagePoints);
const iso = (ms: number) => new Date(ms).toISOString();
/** As JSON writes it: it knows no -0. */
const plain = (value: number) => (Object.is(value, -0) ? 0 : value);

/** The fields of a point in the files, in the order of the CSV. */
const fieldsOf = (point: ExportPoint) => ({
  ...{
    imei: IMEI,
    recorded_at: iso(point.recordedAtMs),
    latitude: plain(point.lat),
    longitude: plain(point.lng),
  },
  ...{ altitude_m: plain(point.altitudeM), speed_kmh: point.speedKmh, heading: point.heading },
  ...{ satellites: point.satellites, odometer_km: point.odometerKm },
});

/** Every file that an encoder makes of any points, in any pages, passes. */
async function always(
  format: ExportFormat,
  check: (text: string, points: readonly ExportPoint[]) => unknown,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(ANY_POINTS, PAGE, async (points, pagePoints) => {
      await check(file(format, points, pagePoints).toString(), points);
    }),
    { numRuns: runs(15) },
  );
}

describe('an export', () => {
  test('as NDJSON has the fields of the history, the altitude and the odometer on each line', () =>
    always('ndjson', (text, points) => {
      const lines = text.split('\n').slice(0, -1);
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        points.map(fieldsOf),
      );
    }));

  test('as CSV has a header and a line for each point, and nothing that a spreadsheet would run', () =>
    always('csv', (text, points) => {
      assert.ok(text.endsWith('\r\n') && !/[^\r]\n/.test(text));
      const [header, ...lines] = parse(text) as string[][];
      assert.deepEqual(header, Object.keys(fieldsOf(ODD)));
      const number = (value: string) => (value === '' ? null : Number(value));
      assert.deepEqual(
        lines.map(([imei, at, ...numbers]) => [imei, at, ...numbers.map(number)]),
        points.map((point) => Object.values(fieldsOf(point))),
      );
      for (const field of lines.flat()) assert.match(field, /^(?:\d[\dT:.Z-]*|-?\d[\d.]*(?:e[+-]\d+)?|)$/);
    }));

  test('as GeoJSON is a collection of points with their properties', () =>
    always('geojson', (text, points) => {
      const features = points.map((point) => {
        const { latitude, longitude, altitude_m, ...properties } = fieldsOf(point);
        const geometry = { type: 'Point', coordinates: [longitude, latitude, altitude_m] };
        return { type: 'Feature', geometry, properties };
      });
      assert.deepEqual(JSON.parse(text), { type: 'FeatureCollection', features });
    }));

  test('as GPX is valid by its schema, with a segment for each part without a gap', async () => {
    const schema = await readFile(join(import.meta.dirname, '../data/gpx-track.xsd'), 'utf8');
    const assertValid = async (text: string): Promise<void> => {
      const { valid, errors } = await validateXML({
        xml: text,
        schema,
        initialMemoryPages: 2 * memoryPages.MiB * 16,
      });
      assert.ok(valid, JSON.stringify(errors.slice(0, 3)) + text.slice(0, 500));
    };
    const texts: string[] = [];
    await always('gpx', (text, points) => {
      texts.push(text);
      const found = [
        ...text.matchAll(/<trkpt lat="(.*?)" lon="(.*?)"><ele>(.*?)<\/ele><time>(.*?)<\/time>/g),
      ];
      found.forEach(([, lat, lng, ele, time], n) => {
        const point = points[n] as ExportPoint;
        assert.equal(time, iso(point.recordedAtMs));
        assert.ok(Math.abs(Number(lat) - point.lat) < 1e-15);
        assert.ok(Math.abs(Number(lng) - (point.lng === 180 ? -180 : point.lng)) < 1e-15);
        assert.ok(Math.abs(Number(ele) - point.altitudeM) < 1e-15);
      });
      assert.equal(found.length, points.length);
      const gaps = points.filter(
        ({ recordedAtMs }, n) => recordedAtMs - (points[n - 1]?.recordedAtMs ?? recordedAtMs) > 600_000,
      );
      assert.equal(text.split('<trkseg>').length - 1, points.length === 0 ? 0 : gaps.length + 1);
    });
    // Each start of the validator takes a tenth of a second.
    for (const text of texts.slice(0, runs(1))) await assertValid(text);
    const odd = file('gpx', [], 1, '<&>]]> "van" \u{FFFE}\u0001\u{1F69A}').toString();
    await assertValid(odd);
    assert.match(odd, /<name>&lt;&amp;&gt;\]\]&gt; "van" 🚚<\/name>/);
  });
});

/** What is used of @duckdb/node-api. */
interface DuckDb {
  readonly DuckDBInstance: { create(path: string): Promise<{ connect(): Promise<DuckDbConnection> }> };
}
interface DuckDbConnection {
  runAndReadAll(sql: string): Promise<{ getRows(): readonly (readonly unknown[])[] }>;
  closeSync(): void;
}

describe('an export as Parquet', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fleet-parquet-'));
  });
  after(() => rm(folder, { recursive: true }));

  /** More than one row group. */
  const MANY = Array.from(
    { length: 17_000 },
    (_, n): ExportPoint => ({
      ...{
        recordedAtMs: START_MS + n * 10_000,
        lat: 41 + n / 1e6,
        lng: -12.5,
        altitudeM: -n,
        speedKmh: n % 90,
      },
      ...{ heading: n % 360, satellites: n % 20, odometerKm: n % 3 === 0 ? null : n / 10 },
    }),
  );

  test('has row groups of several pages', () => {
    const bytes = file('parquet', MANY, 4_096);
    const { num_rows, row_groups } = parquetMetadata(Uint8Array.from(bytes).buffer);
    assert.equal(num_rows, 17_000n);
    assert.deepEqual(
      row_groups.map((group) => [group.num_rows, group.columns.length]),
      [
        [16_384n, 9],
        [616n, 9],
      ],
    );
  });

  test('of very many points has larger row groups, so that its end stays short', async () => {
    const [parts, partPoints] = [67, 16_384];
    const encoder = encoderOf('parquet', '');
    const pieces: Buffer[] = [];
    const take = (piece: Buffer) => void pieces.push(piece);
    const points = Array.from(
      { length: partPoints },
      (_, n): ExportPoint => ({ ...ODD, recordedAtMs: START_MS + n, odometerKm: n % 2 === 0 ? null : n }),
    );
    const page = pageOf(points);
    for (let n = 0; n < parts; n++) inOneGo(encoder.encode(`${350_000_000_000_000 + n}`, page, take));
    inOneGo(encoder.finish(take));
    const file = Uint8Array.from(Buffer.concat(pieces)).buffer;
    const { row_groups } = parquetMetadata(file);
    assert.deepEqual(
      row_groups.map(({ num_rows }) => Number(num_rows) / partPoints),
      [...new Array(64).fill(1), 2, 1],
    );
    const compressors = { ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes) };
    const rowStart = 65 * partPoints - 3;
    const read = await parquetReadObjects({ file, compressors, rowStart, rowEnd: rowStart + 6 });
    const expected = [-3, -2, -1, 0, 1, 2].map((n) => {
      const point = points.at(n) as ExportPoint;
      const { recorded_at, ...fields } = fieldsOf(point);
      return {
        ...fields,
        imei: `${350_000_000_000_065 - Number(n < 0)}`,
        recorded_at: new Date(recorded_at),
      };
    });
    assert.deepEqual(read, expected);
  });

  test('opens in DuckDB, with the bits that were stored', {
    skip: skipWithoutTools(),
  }, async () => {
    const { DuckDBInstance } = await importTool<DuckDb>('@duckdb/node-api');
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    let serial = 0;
    const assertFile = async (points: readonly ExportPoint[], pagePoints: number): Promise<void> => {
      const path = join(folder, `${serial++}.parquet`);
      await writeFile(path, file('parquet', points, pagePoints));
      const reader = await connection.runAndReadAll(
        `select imei, epoch_ms(recorded_at), latitude, longitude, altitude_m, speed_kmh, heading, satellites, odometer_km from '${path}'`,
      );
      const read = reader.getRows().map(([imei, ms, ...rest]) => [imei, Number(ms), ...rest]);
      const names = Object.keys(ODD) as (keyof ExportPoint)[];
      assert.deepEqual(
        read,
        points.map((point) => [IMEI, ...names.map((name) => point[name])]),
      );
    };
    await assertFile([], 1);
    await assertFile(MANY, 4_096);
    await fc.assert(fc.asyncProperty(ANY_POINTS, PAGE, assertFile), { numRuns: runs(4) });
    const types = await connection.runAndReadAll(`describe select * from '${join(folder, '1.parquet')}'`);
    const columns = types.getRows().map(([name, type]) => `${name} ${type}`);
    const doubles = 'latitude DOUBLE, longitude DOUBLE, altitude_m DOUBLE, speed_kmh DOUBLE, heading DOUBLE';
    const times = 'recorded_at TIMESTAMP WITH TIME ZONE';
    assert.equal(
      columns.join(', '),
      `imei VARCHAR, ${times}, ${doubles}, satellites INTEGER, odometer_km DOUBLE`,
    );
    connection.closeSync();
  });
});
