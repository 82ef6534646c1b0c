import { EXAMPLE_IMEI, EXAMPLE_NOW_MS, EXAMPLE_POINT } from '../devices/deviceExamples.ts';
import { IMEI_MESSAGE } from '../devices/imeiParameter.ts';
import { listAnswer } from '../http/answer.ts';
import { ID_MESSAGE } from '../http/id.ts';
import { OFFSET_MESSAGE } from '../http/listPageAnswer.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/body.ts';
import { envelope, page, pageMeta } from '../http/openapi/commonSchemas.ts';
import type { DescribedError, Operation } from '../http/openapi/operation.ts';
import { integer, list, ref } from '../http/openapi/schema.ts';
import {
  AREA_EVENT,
  AREA_FORMAT,
  AREA_TYPE,
  COORDINATES_MESSAGE,
  DEVICE,
  EXTERNAL_ID_FILTER,
  FROM,
  LAT,
  LIST_LIMIT,
  LNG,
  LONG_LIST_OFFSET,
  OFFSET,
  TO,
  WINDOW_MESSAGE,
} from '../http/parameters.ts';
import { EXAMPLE_CIRCLE, EXAMPLE_PLACE, EXAMPLE_POLYGON, EXAMPLE_TRACK } from './areaExamples.ts';
import { areaEventView, areaView } from './areaViews.ts';
import { areaFeature } from './geojsonOut.ts';
import { compileShape } from './shape.ts';

/** The errors of a route about one area. */
export const ONE_AREA: readonly DescribedError[] = [['BAD_REQUEST', ID_MESSAGE], 'NOT_FOUND'];

const ALL_TYPES = [EXAMPLE_CIRCLE, EXAMPLE_POLYGON, EXAMPLE_TRACK, EXAMPLE_PLACE];
const TOTAL = { total: integer('How many areas the filters leave.', { minimum: 0 }) };
const PAGE_META = {
  pagination: { limit: LIST_LIMIT.fallback, offset: 0, count: ALL_TYPES.length },
  total: ALL_TYPES.length,
};

export const LIST_AREAS: Operation = {
  id: 'listAreas',
  tag: 'Areas',
  summary: 'List areas',
  description: 'Every area that the key can see, by id. `meta.total` counts what the filters leave.',
  parameters: [LIST_LIMIT, OFFSET, AREA_TYPE, AREA_FORMAT, EXTERNAL_ID_FILTER],
  answers: [
    answered(
      200,
      'A page of areas, as a list or as a FeatureCollection.',
      envelope({ oneOf: [list(ref('Area')), ref('AreaFeatureCollection')] }, pageMeta(TOTAL)),
      {
        json: dataBody(ALL_TYPES.map(areaView), PAGE_META),
        geojson: dataBody({ type: 'FeatureCollection', features: ALL_TYPES.map(areaFeature) }, PAGE_META),
      },
    ),
  ],
  errors: [
    ['BAD_REQUEST', AREA_TYPE.errorMessage],
    ['BAD_REQUEST', AREA_FORMAT.errorMessage],
  ],
};

export const GET_AREA: Operation = {
  id: 'getArea',
  tag: 'Areas',
  summary: 'Read one area',
  parameters: [AREA_FORMAT],
  answers: [
    answered(
      200,
      'The area, or a Feature with `format=geojson`.',
      envelope({ oneOf: [ref('Area'), ref('AreaFeature')] }),
      {
        json: dataBody(areaView(EXAMPLE_POLYGON)),
        geojson: dataBody(areaFeature(EXAMPLE_POLYGON)),
      },
    ),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', AREA_FORMAT.errorMessage]],
};

const CIRCLE = compileShape(EXAMPLE_CIRCLE.definition);

export const AREA_CONTAINS: Operation = {
  id: 'areaContains',
  tag: 'Areas',
  summary: 'Check whether a point is inside an area',
  description: 'By the same rule that produces entries and exits.',
  parameters: [LAT, LNG],
  answers: [
    answered(200, 'Inside or not.', envelope(ref('Containment')), {
      inside: dataBody({
        inside: CIRCLE.contains(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng),
        distance_m: CIRCLE.signedDistanceM(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng),
      }),
    }),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', COORDINATES_MESSAGE]],
};

export const LIST_AREA_EVENTS: Operation = {
  id: 'listAreaEvents',
  tag: 'Areas',
  summary: 'List the entries and exits of one area',
  description:
    "Newest first. An entry is there once the device has stayed for the area's dwell_seconds of GPS time; passing through leaves nothing.",
  parameters: [AREA_EVENT, DEVICE, FROM, TO, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of entries and exits.', page(ref('AreaEvent')), {
      entry: bodyOf(
        listAnswer(
          [
            areaEventView({
              id: 9041,
              areaId: EXAMPLE_CIRCLE.id,
              imei: EXAMPLE_IMEI,
              direction: 'entry',
              position: EXAMPLE_POINT,
              occurredAtMs: EXAMPLE_NOW_MS,
            }),
          ],
          { limit: 50, offset: 0 },
        ),
      ),
    }),
  ],
  errors: [
    ...ONE_AREA,
    ['BAD_REQUEST', AREA_EVENT.errorMessage],
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', OFFSET_MESSAGE],
    ['BAD_REQUEST', IMEI_MESSAGE],
    'IMEI_REQUIRED',
  ],
};
