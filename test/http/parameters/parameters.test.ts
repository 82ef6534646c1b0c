import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { imeiError } from '../../../src/devices/deviceSchemas.ts';
import {
  choiceParameter,
  idOf,
  limitParameter,
  offsetOf,
  readChoice,
  readLimit,
  windowOf,
} from '../../../src/http/parameters.ts';

const DIGITS = '9'.repeat(400);
const ARABIC_TWO = '\u0662';

test('a limit is moved into its range, a fraction is cut, and what is no decimal number counts as missing', () => {
  const limit = limitParameter(200, 50);
  const rows: readonly (readonly [value: number, ...texts: (string | undefined)[]])[] = [
    [1, '1', '0', '-7', '0.9', `-${DIGITS}`],
    [2, '2', '2.9', '002', '+2'],
    [200, '200', '201', '9007199254740993', DIGITS],
    [50, undefined, '', ' ', 'abc', '0x10', '1e2', 'NaN', 'Infinity', '2,5', ARABIC_TWO],
  ];
  for (const [value, ...texts] of rows) {
    for (const text of texts) assert.equal(readLimit({ limit: text }, limit), value, text);
  }
});

test('an offset is at least 0, a fraction is cut, and what is no decimal number counts as 0', () => {
  const rows: readonly (readonly [value: number, ...texts: (string | undefined)[]])[] = [
    [0, undefined, '', '-1', '-0.9', 'abc', '1e2'],
    [1, '1', '1.9'],
    [Number.MAX_SAFE_INTEGER, '9007199254740993', DIGITS],
  ];
  for (const [value, ...texts] of rows) {
    for (const text of texts) assert.equal(offsetOf({ offset: text }), value, text);
  }
});

test('an id is a positive integer of at most 2^53 - 1, with leading zeros or without', () => {
  const sound = { '1': 1, '0017': 17, '9007199254740991': Number.MAX_SAFE_INTEGER };
  for (const [text, id] of Object.entries(sound)) assert.equal(idOf({ id: text }), id);
  const malformed = [
    ...['', '0', '-1', '+1', '1.0', '1e3', '0x1', 'abc', '1a', ' ', '1 ', ' 1', '1\n', '1/', '1,2'],
  ];
  for (const text of [...malformed, '9007199254740992', '9'.repeat(30), ARABIC_TWO, 'null']) {
    assert.equal(idOf({ id: text }), null, text);
  }
});

describe('an IMEI', () => {
  test('has 14 to 17 digits', () => {
    for (const length of [14, 15, 16, 17]) assert.equal(imeiError('3'.repeat(length)), null);
  });

  const malformed: readonly (readonly [code: string, ...texts: string[]])[] = [
    ['IMEI_REQUIRED', '', ' ', '\t '],
    ['BAD_REQUEST', '3'.repeat(13), '3'.repeat(18), '35000000000000a', 'NEAREST', 'null', '3500000000.0000'],
    ['BAD_REQUEST', '35000000000000 ', ' 35000000000000', '35000000000000\n', '35000000000000\0'],
    ['BAD_REQUEST', '+35000000000000', '-35000000000000', '35000000000000/', '\uff13\uff155000000000000'],
  ];
  for (const [code, ...texts] of malformed) {
    test(`is refused with ${code} when it is ${texts.map((text) => JSON.stringify(text)).join(' or ')}`, () => {
      for (const text of texts)
        assert.match(String(imeiError(text)?.body), new RegExp(`"code":"${code}"`), text);
    });
  }
});

describe('a window', () => {
  const MIDNIGHT_MS = Date.UTC(2026, 2, 14);
  const rows: readonly (readonly [title: string, query: object, expected: object | 'invalid'])[] = [
    ['is open at an end that is missing or blank', { to: ' ' }, { fromMs: null, toMs: null }],
    ['begins a date at midnight UTC', { from: '2026-03-14' }, { fromMs: MIDNIGHT_MS, toMs: null }],
    ['takes an offset', { to: '2026-03-14T02:00:00+02:00' }, { fromMs: null, toMs: MIDNIGHT_MS }],
    ['takes no zone for UTC', { to: '2026-03-14T00:00:00' }, { fromMs: null, toMs: MIDNIGHT_MS }],
    ['cuts microseconds', { from: '2026-03-14T00:00:00.000999Z' }, { fromMs: MIDNIGHT_MS, toMs: null }],
    ['is refused for a start that is no time', { from: 'yesterday' }, 'invalid'],
    ['is refused for an end that is no time', { to: '2026-02-30' }, 'invalid'],
    ['is refused for milliseconds', { from: '1767225600000' }, 'invalid'],
    ['is refused for a plus that was not escaped', { from: '2026-01-01T00:00:00 02:00' }, 'invalid'],
  ];
  for (const [title, query, expected] of rows) {
    test(title, () => assert.deepEqual(windowOf(query as Record<string, string>), expected));
  }
});

test('a choice is one of its words exactly; missing or blank is none, anything else is refused', () => {
  const choice = choiceParameter('type', ['circle', 'point'], 'Only areas of this type.');
  assert.equal(readChoice({ type: 'point' }, choice), 'point');
  for (const text of [undefined, '', ' ']) assert.equal(readChoice({ type: text }, choice), null);
  for (const text of ['square', 'Circle', 'circle,point', ' circle', '__proto__', '\0']) {
    assert.equal(readChoice({ type: text }, choice), 'invalid', text);
  }
});
