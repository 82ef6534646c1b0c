import { EXAMPLE_NOW_MS } from '../devices/deviceExamples.ts';
import type { DescribedError } from '../http/openapi/operation.ts';
import { CURSOR_MESSAGE } from './feedParameters.ts';

/** As long as one is, and meaning nothing. */
export const EXAMPLE_CURSOR = 'q1ZKzi8tykxOVbJSKkktLlHSUSouScxLTixKUbJSMjQwMNBRSixKVbJSKijKz0pNLgEA';

export const CURSOR_ERRORS: readonly DescribedError[] = [['BAD_REQUEST', CURSOR_MESSAGE], 'CURSOR_EXPIRED'];

export const RECORDED_AT_MS = EXAMPLE_NOW_MS - 7_000;
