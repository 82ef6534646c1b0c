import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, type QueryResult } from 'pg';
import { advanceEventPartitions, EventCuts } from '../../src/events/eventPartitions.sql.ts';
import { EVENT_TYPE_FILTERS, parseEventTypeFilter } from '../../src/events/fleetEvent.ts';
import { selectAreaEvents, selectFleetEvents } from '../../src/events/fleetEvents.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { Statement } from '../../src/postgres/sqlText.ts';
import { selectDeadLetters, selectDeliveries } from '../../src/webhooks/deliveries.sql.ts';
import type { DeliveryStatus } from '../../src/webhooks/delivery.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { IS_TORTURE } from '../support/torture.ts';

/** Events of the two worlds that are read; a third has as many. Deliveries of the endpoint that is read. */
const ROWS = 20_000;
/** Geofence events of each of the ten devices. */
const OF_A_DEVICE = ROWS / 10;
/** Partitions of events: with rows, made ahead, and for the rest. */
const PARTS = 3;
const LIMIT = 50;
const OFFSETS = IS_TORTURE ? [0, 1_000, 8_000] : [0, 8_000];
const OWN = 350_000_000_000_001;
const FOREIGN = 350_000_000_000_099;

let client: Client;
let sql: Sql;
const cuts = new EventCuts();

before(async () => {
  const { url } = await createDatabase();
  client = new Client({ connectionString: url });
  await client.connect();
  sql = openSql(url, { maxConnections: 1, name: 'test' });
  // Ten devices of two worlds; geofence events in nine of ten, a rare alarm, and never an rfid. Half are another's.
  await client.query(`
    insert into world default values; insert into world default values; insert into world default values;
    insert into device (imei, world_id) values ('${OWN}', 1), ('${FOREIGN}', 3);
    insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at, area_id, direction)
    select
      case when n % 2 = 0 then 3 when n % 7 = 0 then 2 else 1 end, 1,
      (case when n % 2 = 0 then ${FOREIGN} else ${OWN} + n / 10 % 10 end)::text,
      case when n % 1001 = 0 then 'alarm' when n % 10 = 9 then 'ignition_on' else 'geofence' end,
      'text', '{"position":{"lat":1,"lng":2}}', '2026-01-01'::timestamptz + make_interval(secs => n),
      case when n % 1001 = 0 or n % 10 = 9 then null else 1 + n / 20 % 3 end,
      case when n % 1001 = 0 or n % 10 = 9 then null when n / 60 % 2 = 0 then 'entry' else 'exit' end
    from generate_series(1, ${2 * ROWS}) n;
    create table week1 partition of webhook_delivery for values from ('2026-01-01') to ('2026-01-08');
    create table week2 partition of webhook_delivery for values from ('2026-01-08') to ('2026-01-15');
    insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body, status, created_at)
    select 'dlv_' || n, 1 + n % 2, 1 + n % 2, 'evt_' || n, 'alarm', '{}',
      case when n % 1000 < 2 then 'exhausted' else 'delivered' end,
      '2026-01-01'::timestamptz + make_interval(secs => n * 25)
    from generate_series(1, ${2 * ROWS}) n;
  `);
  await advanceEventPartitions(sql, 730);
  await cuts.refresh(sql);
  await client.query('vacuum analyze fleet_event, webhook_delivery');
});
after(async () => {
  await client.end();
  await sql.end();
});

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** The cost of a read: rows that were scanned or sorted, and blocks. */
interface Cost {
  readonly found: number;
  readonly scanned: number;
  readonly sorted: number;
  readonly blocks: number;
}

/** The costs of a read: with a plan for its values and, if it is a prepared statement, with a plan for any values. */
async function costsOf(read: (sql: Sql) => Promise<unknown>): Promise<Cost[]> {
  let costs: Cost[] = [];
  let statements = 0;
  const run = async (text: string, values: readonly unknown[] = [], name?: string) => {
    statements++;
    const explain = `explain (analyze, buffers, format json) ${text}`;
    costs = [summed((await client.query(explain, [...values])).rows)];
    if (name !== undefined) costs.push(summed((await explainGeneric(text, values)).rows));
    return Object.assign([], { count: 0 });
  };
  const explaining = (strings: readonly string[], ...values: readonly unknown[]) =>
    new Statement(run, { strings, values });
  await read(explaining as unknown as Sql);
  // What an account has deleted is read before its dead letters: a handful of rows.
  assert.ok(statements <= 2);
  return costs;
}

async function explainGeneric(text: string, values: readonly unknown[]): Promise<QueryResult> {
  const literals = values.map((value) => {
    if (value === null) return 'null';
    return client.escapeLiteral(value instanceof Date ? value.toISOString() : String(value));
  });
  const results = await client.query(`
    set plan_cache_mode = force_generic_plan; prepare p as ${text};
    explain (analyze, buffers, format json) execute p(${literals.join(', ')});
    deallocate p; reset plan_cache_mode`);
  return (results as unknown as QueryResult[])[2] as QueryResult;
}

function summed(rows: readonly { 'QUERY PLAN': [{ Plan: PlanNode }] }[]): Cost {
  const root = rows[0]?.['QUERY PLAN'][0].Plan;
  assert.ok(root);
  const nodes = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodes)];
  const rowsOf = (chosen: readonly PlanNode[]): number =>
    chosen.reduce(
      (sum, node) =>
        sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    );
  const all = nodes(root);
  assert.deepEqual(
    // A partition that is empty or was never read may have any node in a plan.
    all.filter(
      (node) =>
        node['Node Type'] === 'Seq Scan' &&
        node['Relation Name'] !== 'webhook_removed' &&
        node['Shared Hit Blocks'] + node['Shared Read Blocks'] > 0,
    ),
    [],
    'no table is read row by row',
  );
  return {
    found: root['Actual Rows'],
    scanned: rowsOf(all.filter((node) => node['Relation Name'] !== undefined)),
    sorted: rowsOf(all.filter((node) => node['Node Type'] === 'Sort')),
    blocks: root['Shared Hit Blocks'] + root['Shared Read Blocks'],
  };
}

/**
 * A page costs its way to it, once or for each of its two directions, and its rows; nothing costs a few blocks.
 * `passed`: how many others may be read on the way.
 */
function assertProportionate(costs: readonly Cost[], offset: number, walks: number, passed = 0): void {
  assert.ok(costs.length > 0);
  const reach = offset + LIMIT + passed;
  for (const { found, scanned, sorted, blocks } of costs) {
    if (found === 0 && offset === 0 && passed === 0)
      assert.ok(scanned <= 1 && blocks <= 6 * walks + 20, JSON.stringify({ blocks, walks }));
    assert.ok(scanned <= 2 * reach + LIMIT + walks, `${scanned} rows were looked at`);
    assert.ok(sorted <= 2 * LIMIT, `${sorted} rows were sorted`);
    assert.ok(blocks <= 6 * LIMIT + 6 * walks + reach / 10, `${blocks} blocks were read for ${reach} keys`);
  }
}

const WINDOWS: readonly (readonly [name: string, fromMs: number | null, toMs: number | null])[] = [
  ['of all times', null, null],
  ['of a day', Date.parse('2026-01-01T06:00:00Z'), Date.parse('2026-01-02T06:00:00Z')],
  ['before there were any', null, Date.parse('2025-01-01T00:00:00Z')],
  ['of the future', Date.parse('2027-01-01T00:00:00Z'), null],
];

describe('the list of events is read by an index', () => {
  const devices = [null, String(OWN), String(FOREIGN), '350000000000055'];
  for (const worldIds of [[1], [1, 2]]) {
    for (const type of [null, ...(worldIds.length === 1 && !IS_TORTURE ? [] : EVENT_TYPE_FILTERS)]) {
      test(`of ${worldIds.length} worlds and the type ${type ?? 'any'}, whichever device and time`, async () => {
        const parsed = type === null ? null : parseEventTypeFilter(type);
        for (const imei of devices) {
          for (const [, fromMs, toMs] of WINDOWS) {
            for (const offset of OFFSETS) {
              const filter = {
                type: parsed?.type ?? null,
                direction: parsed?.direction ?? null,
                imei,
                fromMs,
                toMs,
              };
              const costs = await costsOf((sql) =>
                selectFleetEvents(sql, worldIds, filter, { limit: LIMIT, offset }, cuts),
              );
              assertProportionate(costs, offset, worldIds.length * 8 * PARTS);
            }
          }
        }
      });
    }
  }
});

test('the list of events is what sorting all of them gives', async () => {
  for (const type of [null, 'geofence', 'geofence_exit', 'ignition_on']) {
    for (const imei of [null, String(OWN + 3)]) {
      for (const offset of [0, 7]) {
        const parsed = type === null ? null : parseEventTypeFilter(type);
        const window = {
          fromMs: Date.parse('2026-01-01T06:00:00Z'),
          toMs: Date.parse('2026-01-01T08:00:00Z'),
        };
        const filter = { type: parsed?.type ?? null, direction: parsed?.direction ?? null, imei, ...window };
        const found = await selectFleetEvents(sql, [1, 2], filter, { limit: LIMIT, offset }, cuts);
        const { rows } = await client.query(
          `select id::int from fleet_event where world_id in (1, 2) and occurred_at between $1 and $2
             and ($3::text is null or type = $3) and ($4::text is null or direction = $4)
             and ($5::text is null or device_imei = $5)
           order by occurred_at desc, id desc limit ${LIMIT} offset ${offset}`,
          [new Date(window.fromMs), new Date(window.toMs), filter.type, filter.direction, imei],
        );
        assert.ok(rows.length > 10);
        assert.deepEqual(
          found.map(({ id }) => id),
          rows.map(({ id }) => id),
        );
      }
    }
  }
});

describe('the list of an area is read by an index', () => {
  for (const direction of [null, 'entry', 'exit'] as const) {
    test(`of the direction ${direction ?? 'any'}, whichever device, time and worlds`, async () => {
      for (const worldIds of [[1], [1, 2], [9]]) {
        for (const imei of [null, String(OWN), String(FOREIGN)]) {
          for (const [, fromMs, toMs] of WINDOWS) {
            for (const offset of OFFSETS) {
              const costs = await costsOf((sql) =>
                selectAreaEvents(
                  sql,
                  worldIds,
                  1,
                  { direction, imei, fromMs, toMs },
                  { limit: LIMIT, offset },
                  cuts,
                ),
              );
              assertProportionate(
                costs,
                offset,
                worldIds.length * 2 * PARTS,
                imei === null ? 0 : OF_A_DEVICE,
              );
            }
          }
        }
      }
    });
  }
});

describe('the lists of deliveries are read by an index', () => {
  const states: readonly (DeliveryStatus | null)[] = [null, 'delivered', 'exhausted', 'failed'];
  for (const [name, fromMs, toMs] of WINDOWS) {
    test(`${name}, in whichever state`, async () => {
      for (const offset of OFFSETS) {
        const page = { limit: LIMIT, offset, fromMs, toMs };
        for (const state of states) {
          assertProportionate(await costsOf((sql) => selectDeliveries(sql, 1, state, page)), offset, 2);
        }
        assertProportionate(await costsOf((sql) => selectDeadLetters(sql, 1, page)), offset, 2);
        assertProportionate(await costsOf((sql) => selectDeadLetters(sql, 7, page)), offset, 2);
      }
    });
  }
});
