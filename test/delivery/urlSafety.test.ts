import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CidrSet, parseCidrs } from '../../src/access/cidrSet.ts';
import { judgeWebhookUrl, urlFaultMessage } from '../../src/delivery/urlSafety.ts';
import { ALLOWED_NETS, ALLOWED_URL_ROWS, URL_ROWS, type UrlRow } from '../support/webhookUrls.ts';

const SEED = 20_260_301;
const NOBODY = new CidrSet([]);

function check(row: UrlRow, allowNets: CidrSet): void {
  const judged = judgeWebhookUrl(row.url, allowNets);
  const verdict = judged.ok ? judged.value : { refused: judged.error };
  assert.deepEqual(verdict, row.stored);
  if (judged.ok) assert.deepEqual(judgeWebhookUrl(judged.value, allowNets), judged);
}

const label = ({ url }: UrlRow) => JSON.stringify(url.length > 80 ? `${url.slice(0, 80)}…` : url);

describe('judgeWebhookUrl', () => {
  test('there are at least 80 rows, all of one kind or the other', () => {
    assert.ok(URL_ROWS.length >= 80);
  });

  for (const row of URL_ROWS) {
    const refused = typeof row.stored === 'object';
    if (row.answers && row.url === 'https://hook.example.com/in') continue;
    test(`${label(row)} is ${refused ? 'refused' : 'taken'}`, () => check(row, NOBODY));
  }

  const allowed = parseCidrs(ALLOWED_NETS);
  assert.ok(allowed.ok);
  for (const row of ALLOWED_URL_ROWS) {
    const refused = typeof row.stored === 'object';
    test(`with exempt networks ${label(row)} is ${refused ? 'refused' : 'taken'}`, () =>
      check(row, allowed.value));
  }

  test('whatever is taken parses to https, a host without user info, and itself when judged again', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl(), fc.string(), fc.string({ unit: 'grapheme' })), (text) => {
        for (const url of [text, `https://${text}`]) {
          const judged = judgeWebhookUrl(url, NOBODY);
          if (!judged.ok) {
            assert.ok(urlFaultMessage(judged.error).startsWith('url must'));
            continue;
          }
          const parsed = new URL(judged.value);
          assert.equal(parsed.protocol, 'https:');
          assert.equal(parsed.username + parsed.password, '');
          assert.match(parsed.hostname, /\.|^\[/);
          assert.equal(parsed.href, new URL(new URL(url).href.replace(/\.(:\d+)?\//, '$1/')).href);
          assert.deepEqual(judgeWebhookUrl(judged.value, NOBODY), judged);
        }
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });
});
