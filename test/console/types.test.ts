import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { describedApi } from '../support/http/describedApi.ts';
import { compile, STRICTER, typesOf } from '../support/http/typedClient.ts';
import { skipWithoutTools } from '../tools/tools.ts';

const TYPES = join(import.meta.dirname, '..', '..', 'src', 'console', 'page', 'types.ts');

/** What the description calls it, and what the console does. Keys belong to v1, which is not described. */
const PAIRS = {
  ChangedDevice: 'ChangedDevice',
  RemovedDevice: 'ChangedDevice',
  FleetEvent: 'FleetEvent',
  HistoryPoint: 'HistoryPoint',
  LatLng: 'LatLng',
  Area: 'Area',
  AreaDevice: 'DeviceInArea',
  BacktestResult: 'Backtest',
  BacktestNote: 'Note',
  AreaWarning: 'Note',
  Explanation: 'Explanation',
  ExplanationNote: 'Note',
  Webhook: 'Webhook',
  Delivery: 'Delivery',
  DeliverySummary: 'DeliverySummary',
  AreaFieldError: 'FieldError',
  WebhookFieldError: 'FieldError',
};

test('what the API is described to answer is what the console reads', {
  skip: skipWithoutTools(),
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'console-types-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'api.ts'), await typesOf(JSON.stringify(describedApi())));
  const checks = Object.entries(PAIRS).map(([api, own]) => `Reads<Api['${api}'], Own.${own}>`);
  await writeFile(
    join(folder, 'reads.ts'),
    `import type { components } from './api.ts';
import type * as Own from ${JSON.stringify(TYPES)};
type Api = components['schemas'];
type Reads<Answer extends Read, Read> = [Answer, Read];
export type Checks = [\n${checks.join(',\n')}\n];\n`,
  );
  assert.deepEqual(await compile(folder, ['reads.ts'], STRICTER), []);
});
