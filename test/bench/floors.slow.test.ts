import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFloor } from '../../bench/setup/measuredServer.ts';

const ANSWER = {
  headers: { 'content-type': 'application/json', 'content-length': '13', 'x-frame-options': 'DENY' },
  body: '{"data":"ok"}',
};

for (const server of ['express', 'node', 'nodeTogether'] as const) {
  test(`the floor ${server} answers every call with the bytes that it was given`, async () => {
    await using floor = await openFloor({ kind: 'start', server, route: '/:id', answer: ANSWER });
    const before = await floor.usage();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => fetch(`${floor.urls[0]}/${n}`)));
    for (const answer of answers) {
      assert.equal(answer.status, 200);
      for (const [name, value] of Object.entries(ANSWER.headers)) {
        if (name !== 'x-frame-options' || server !== 'express') assert.equal(answer.headers.get(name), value);
      }
      assert.equal(await answer.text(), ANSWER.body);
    }
    assert.ok((await floor.usage()).cpuUs > before.cpuUs);
  });
}
