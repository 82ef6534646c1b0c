import { EXAMPLE_HISTORY } from '../devices/deviceExamples.ts';
import { ONE_DEVICE } from '../devices/deviceOperations.ts';
import { historyView } from '../devices/deviceViews.ts';
import { listAnswer } from '../http/answer.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/body.ts';
import { envelope, page } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { list, ref, text } from '../http/openapi/schema.ts';
import { FROM, HISTORY_LIMIT, TO, WINDOW_MESSAGE } from '../http/parameters.ts';
import { EXPORT_TYPES } from './export/exportFormats.ts';
import { EXPORTS_PER_ACCOUNT } from './export/exportHistory.ts';
import { EXAMPLE_DAY, EXAMPLE_SUMMARY, NO_HISTORY } from './historyExamples.ts';
import {
  EXPORT_FORMAT,
  SUMMARY_BY,
  TIME_ZONE,
  TOO_MANY_POINTS,
  TOO_MANY_TRIPS,
} from './historyParameters.ts';
import { SUMMARY_META } from './historySchemas.ts';
import { periodView, summaryMeta } from './historyViews.ts';

export const GET_HISTORY: Operation = {
  id: 'getPositionHistory',
  tag: 'Devices',
  summary: 'Read the position history of a device',
  description:
    'Newest first. What lies further back than the plan of the account retains is left out. To read on, ask again with `to` at the time of the last point.',
  parameters: [FROM, TO, HISTORY_LIMIT],
  answers: [
    answered(200, 'Points of the history.', page(ref('HistoryPoint')), {
      points: bodyOf(listAnswer([historyView(EXAMPLE_HISTORY)], { limit: 500, offset: 0 })),
    }),
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', WINDOW_MESSAGE]],
};

export const GET_HISTORY_SUMMARY: Operation = {
  id: 'getHistorySummary',
  tag: 'Devices',
  summary: 'Read what a device did: in all, by day or by trip',
  description:
    'Oldest first. `total` is one period. `day` gives every day of `tz` from that of the first point to that of the last. `trip` gives what lies between parkings, from the last point of one to the first point of the next; a parking is 120 seconds or more under 5 km/h. Noise of a parked vehicle is no distance. More than 10 minutes without a point are a gap, which is neither moving nor parked nor a distance. What lies further back than the plan of the account retains is left out, and what lies outside of `from` and `to` is not looked at.',
  parameters: [FROM, TO, SUMMARY_BY, TIME_ZONE],
  answers: [
    answered(200, 'The periods.', envelope(list(ref('HistoryPeriod')), SUMMARY_META), {
      'a day': dataBody([periodView(EXAMPLE_DAY)], summaryMeta(EXAMPLE_SUMMARY)),
      'nothing reported': dataBody(
        [periodView(NO_HISTORY)],
        summaryMeta({ ...EXAMPLE_SUMMARY, by: 'total' }),
      ),
    }),
  ],
  errors: [
    ...ONE_DEVICE,
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', SUMMARY_BY.errorMessage],
    ['BAD_REQUEST', TIME_ZONE.errorMessage],
    ['BAD_REQUEST', TOO_MANY_POINTS],
    ['BAD_REQUEST', TOO_MANY_TRIPS],
  ],
};

const { ndjson, ...OTHER_TYPES } = EXPORT_TYPES;

export const EXPORT_HISTORY: Operation = {
  id: 'exportPositionHistory',
  tag: 'Devices',
  summary: 'Read all points of a device in a time as a file',
  description: `Oldest first, without a limit, made while it is read. A file that ends early is not whole: its connection is cut. Who takes less than two megabytes a minute is cut off. An account has ${EXPORTS_PER_ACCOUNT} exports at a time on a pod; the next is ${'`'}429${'`'}. What lies further back than the plan of the account retains is left out.`,
  parameters: [EXPORT_FORMAT, FROM, TO],
  answers: [
    {
      status: 200,
      description: 'The file.',
      contentType: ndjson,
      fileTypes: Object.values(OTHER_TYPES),
      schema: text(undefined, { format: 'binary' }),
    },
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', WINDOW_MESSAGE], ['BAD_REQUEST', EXPORT_FORMAT.errorMessage]],
};
