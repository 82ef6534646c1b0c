import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { after, describe, type TestContext, test } from 'node:test';
import { ImportOverload, ImportPlanner, ImportTooLarge } from '../../../src/areas/import/importPlanner.ts';
import { Overloaded } from '../../../src/lib/fairSemaphore.ts';
import { ok } from '../../../src/lib/result.ts';
import { WorkTurns } from '../../../src/lib/workTurns.ts';
import { waitFor } from '../../support/waitFor.ts';
import { newTurns } from '../../support/workTurns.ts';
import { collection, lineString, POINT, polygon, RING } from '../reads/geojson.ts';
import { coded, feature, plan } from './importing.ts';

const bytesOf = (body: unknown): Uint8Array =>
  new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
const PLACE = feature(POINT);
/** So many places in one body. */
const places = (count: number) => bytesOf(collection(...Array(count).fill(PLACE)));
const FINE = places(1);

function newPlanner(t: TestContext): ImportPlanner {
  const planner = new ImportPlanner(newTurns(), 0);
  t.after(() => planner.close());
  return planner;
}

/** One for the tests of a suite, that starts its process once. */
const sharedPlanner = (): ImportPlanner => {
  const planner = new ImportPlanner(newTurns(), 0);
  after(() => planner.close());
  return planner;
};

async function assertPlans(planner: ImportPlanner): Promise<void> {
  assert.deepEqual(await planner.plan(1, [FINE]), ok(plan(collection(PLACE))));
}

describe('a small import body is read without a process', () => {
  const newSmall = (t: TestContext, turns = newTurns()): ImportPlanner => {
    const planner = new ImportPlanner(turns);
    t.after(() => planner.close());
    // A process could not be started.
    const { execPath } = process;
    process.execPath = '/nowhere/node';
    t.after(() => {
      process.execPath = execPath;
    });
    return planner;
  };
  const padded = (bytes: number): Uint8Array => {
    const text = JSON.stringify({ padding: '', ...collection(PLACE) });
    return bytesOf(text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`));
  };

  test('up to 256 KB and 20 000 values', async (t) => {
    const planner = newSmall(t);
    const values = (count: number) => bytesOf(`{"type":"Nothing","x":[${'0,'.repeat(count - 6)}0]}`);
    assert.ok((await planner.plan(1, [padded(256 * 1024)])).ok);
    assert.ok(!(await planner.plan(1, [values(20_000)])).ok);
    for (const large of [padded(256 * 1024 + 1), values(20_001)])
      await assert.rejects(planner.plan(1, [large]), ImportOverload);
  });

  test('a hundred at once, feature by feature, in turn by account', async (t) => {
    const turns = new WorkTurns<number | string>(0); // one step in a turn
    const planner = newSmall(t, turns);
    const order: number[] = [];
    const plans = Array.from({ length: 100 }, () => planner.plan(1, [places(50)]));
    const other = planner.plan(2, [FINE]).then(() => order.push(2));
    await Promise.all([...plans.map((plan) => plan.then(() => order.push(1))), other]);
    assert.equal(order[0], 2);
    assert.equal(order.length, 101);
  });
});

describe('an import body is read in a process of its own', () => {
  const planner = sharedPlanner();

  test('into the same plan as in this one', async () => {
    const features = [PLACE, coded('b'), feature(lineString([1, 2], [3, 4])), feature(polygon(RING)), null];
    const body = { dry_run: true, geojson: collection(...features) };
    assert.deepEqual(await planner.plan(1, [bytesOf(body)]), ok(plan(body)));
  });

  const rejected: readonly (readonly [title: string, body: Uint8Array, code: string])[] = [
    ['no JSON', bytesOf('{'), 'INVALID_BODY'],
    ['no UTF-8', Uint8Array.from([0x7b, 0xff, 0x7d]), 'INVALID_BODY'],
    ['100 000 levels', bytesOf('['.repeat(100_000)), 'INVALID_BODY'],
    ['no GeoJSON', bytesOf({}), 'INVALID_GEOJSON'],
  ];
  test('and what is none is refused', async () => {
    for (const [title, body, code] of rejected) {
      const plan = await planner.plan(1, [body]);
      assert.ok(!plan.ok && plan.error !== 'too_many_values', title);
      const codes = plan.error.map((error) => error.code);
      assert.deepEqual(codes, [code], title);
    }
  });

  test('in whatever pieces it comes', async () => {
    const whole = await planner.plan(1, [FINE]);
    for (const length of [1, 7, 100]) {
      const pieces: Uint8Array[] = [];
      for (let at = 0; at < FINE.length; at += length) pieces.push(FINE.subarray(at, at + length));
      assert.deepEqual(await planner.plan(1, pieces), whole);
    }
    assert.ok(!(await planner.plan(1, [])).ok);
  });

  test('many at once, each with its own plan, in any order of sizes', async () => {
    const counts = [3, 0, 150, 1, 40, 2, 0, 5];
    const plans = await Promise.all(counts.map((count) => planner.plan(1, [places(count)])));
    const planned = plans.map((plan) => plan.ok && plan.value.items.length);
    assert.deepEqual(planned, counts);
  });
});

describe('the planner keeps its bounds', () => {
  const planner = sharedPlanner();

  test('a hundred bodies of one account wait for the process, the two hundred and second at once is refused', async () => {
    const taken = Array.from({ length: 201 }, () => assertPlans(planner));
    await assert.rejects(planner.plan(1, [FINE]), Overloaded);
    await Promise.all(taken);
    await assertPlans(planner);
  });

  test('an account whose bodies wait holds up another by one of them', async () => {
    const order: number[] = [];
    const take = async (accountId: number) => {
      await planner.plan(accountId, [FINE]);
      order.push(accountId);
    };
    await Promise.all([1, 1, 1, 1, 1, 2, 3, 2].map(take));
    assert.deepEqual(order.slice(0, 5), [1, 2, 3, 1, 2]);
  });

  test('closing ends what waits, closing again does nothing', async () => {
    const planner = new ImportPlanner(newTurns(), 0);
    const waiting = assert.rejects(planner.plan(1, [bytesOf('['.repeat(20_000_000))]));
    await planner.close();
    await waiting;
    await planner.close();
    await new ImportPlanner(newTurns(), 0).close();
  });
});

const HAS_CHILDREN = existsSync(`/proc/${process.pid}/task/${process.pid}/children`);

describe('the process', { skip: HAS_CHILDREN ? false : 'there are no lists of children in /proc' }, () => {
  /** Of this process, by their numbers. */
  async function children(pid: number = process.pid): Promise<number[]> {
    const tasks = await readdir(`/proc/${pid}/task`);
    const lists = tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8'));
    return (await Promise.all(lists)).flatMap((list) => list.trim().split(' ').filter(Boolean).map(Number));
  }
  /** One that has ended may stay in the list until somebody asks what became of it. */
  const isRunning = async (pid: number): Promise<boolean> => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    return /\) [^ZX]/.test(stat);
  };

  test('is one for all imports, outlives Ctrl-C, which the service answers, and is replaced when it dies', async (t) => {
    const planner = newPlanner(t);
    await assertPlans(planner);
    const [pid] = (await children()) as [number];
    process.kill(pid, 'SIGINT');
    process.kill(pid, 'SIGTERM');
    await assertPlans(planner);
    assert.deepEqual(await children(), [pid]);
    // One that dies costs the import that it was reading, and no other.
    process.kill(pid, 'SIGSTOP');
    const rejected = assert.rejects(planner.plan(1, [FINE]), ImportTooLarge);
    const next = assertPlans(planner);
    process.kill(pid, 'SIGKILL');
    await Promise.all([rejected, next]);
  });

  test('says by which defect it ends', async () => {
    const child = fork(new URL('../../../src/areas/import/importProcess.ts', import.meta.url), {
      serialization: 'advanced',
      execArgv: ['--import', 'data:text/javascript,Buffer.concat=()=>{throw new Error("on purpose")}'],
      stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
    });
    child.send(0);
    const [reply] = await once(child, 'message');
    assert.match(reply.error, /on purpose.*importProcess/s);
    assert.deepEqual(await once(child, 'exit'), [1, null]);
  });

  test('that stands still is given up after a minute, and another one goes on', async (t) => {
    const planner = newPlanner(t);
    await assertPlans(planner);
    const [pid] = (await children()) as [number];
    process.kill(pid, 'SIGSTOP');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const rejected = assert.rejects(planner.plan(1, [FINE]), ImportOverload);
    const next = assertPlans(planner);
    await new Promise((resolve) => setImmediate(resolve)); // the process is asked a few promises later
    t.mock.timers.tick(60_000);
    t.mock.timers.reset();
    await Promise.all([rejected, next]);
    await waitFor(async () => !(await isRunning(pid)));
  });

  test('that cannot be started refuses the import, and the next one tries again', async (t) => {
    const planner = newPlanner(t);
    const { execPath } = process;
    process.execPath = '/nowhere/node';
    await assert.rejects(planner.plan(1, [FINE]), ImportOverload);
    process.execPath = execPath;
    await assertPlans(planner);
  });

  test('ends when it has had nothing to do for a minute, and another one reads the next import', async (t) => {
    const planner = newPlanner(t);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await assertPlans(planner);
    const [pid] = (await children()) as [number];
    t.mock.timers.tick(59_999);
    assert.ok(await isRunning(pid));
    t.mock.timers.tick(1);
    t.mock.timers.reset();
    await waitFor(async () => !(await isRunning(pid)));
    await assertPlans(planner);
  });

  test('ends with the service, also when that is killed', async () => {
    const file = JSON.stringify(new URL('../../../src/areas/import/importPlanner.ts', import.meta.url).href);
    const script = `
      const { ImportPlanner } = await import(${file});
      await new ImportPlanner(null, 0).plan(1, [new TextEncoder().encode('{}')]);
      console.log('planned');
      setInterval(() => undefined, 1_000);`;
    const service = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(service.stdout, 'data');
    const [pid] = (await children(service.pid)) as [number];
    assert.ok(await isRunning(pid));
    service.kill('SIGKILL');
    await waitFor(async () => !(await isRunning(pid)));
  });
});
