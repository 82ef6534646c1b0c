import { scopeMask } from '../../access/scopes.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../../http/answer.ts';
import type { BulkCalls } from '../../http/bulkCalls.ts';
import { answered, dataBody, type Operation } from '../../http/openapi/operation.ts';
import { envelope, integer, list, number, ref, shapeOf } from '../../http/openapi/schema.ts';
import { idOf, malformedId } from '../../http/parameters.ts';
import type { Route } from '../../http/route.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { areaName } from '../area.ts';
import type { Area, AreaCatalog } from '../areaCatalog.memory.ts';
import { AREA_NAME, ONE_AREA } from '../areaSchemas.ts';
import type { FoundOverlaps, Overlap, Overlaps, TooComplex } from './overlaps.ts';

export const OVERLAP_SCHEMAS = {
  AreaOverlap: shapeOf<ReturnType<typeof overlapView>>({
    area: AREA_NAME,
    overlap_m2: number('Square metres that both have in common.', { minimum: 0 }),
    share: number('Of the area that was asked about.', { minimum: 0, maximum: 1 }),
    share_of_other: number('Of the other area.', { minimum: 0, maximum: 1 }),
  }),
};

const AREA_OVERLAPS: Operation = {
  id: 'areaOverlaps',
  tag: 'Areas',
  summary: 'Find the areas that overlap an area',
  description:
    'The areas of the key whose interiors meet this one, largest overlap first. Areas are measured on the ellipsoid; circles, points and polylines within 0.1 %. An account has one of these calls at a time on a pod, further ones wait up to 15 seconds, and each has two seconds of computing: beyond that the answer is 422 `TOO_COMPLEX`, whose message names what to simplify.',
  answers: [
    answered(
      200,
      'The overlaps.',
      envelope(
        list(ref('AreaOverlap')),
        shapeOf<{ total: number }>({ total: integer('How many there are.', { minimum: 0 }) }),
      ),
      {
        one: dataBody(
          [
            {
              area: { id: 43, name: 'City', type: 'polygon', external_id: null },
              overlap_m2: 196_349.54,
              share: 1,
              share_of_other: 0.0021,
            },
          ],
          { total: 1 },
        ),
        none: dataBody([], { total: 0 }),
      },
    ),
  ],
  errors: [...ONE_AREA, 'TOO_COMPLEX'],
};

/** Items whose JSON is made between two looks at the clock. */
const ITEMS_PER_STEP = 100;
/** More than measuring takes at most, and making the JSON. */
const DEADLINE_MS = 60_000;

interface AreaOverlapPorts {
  readonly areas: AreaCatalog;
  readonly overlaps: Overlaps;
  readonly bulkCalls: BulkCalls;
}

/** The areas whose interiors meet that of one area, largest overlap first. Answered from memory. */
export function areaOverlapsRoute({ areas, overlaps, bulkCalls }: AreaOverlapPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/overlaps',
    scopes: scopeMask('read_areas'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    describe: AREA_OVERLAPS,
    deadlineMs: DEADLINE_MS,
    handle: async ({ caller: { accountId, worldIds }, params }) => {
      const id = idOf(params);
      if (id === null) return malformedId();
      const area = areas.area(worldIds, id);
      if (area === undefined) return errorAnswer('NOT_FOUND');
      const found = await overlaps.find(accountId, area, areas.meeting(worldIds, area));
      if (!found.ok) return errorAnswer('TOO_COMPLEX', tooComplexMessage(area, found.error));
      return bulkCalls.run(accountId, () => answerOverlaps(found.value));
    },
  };
}

function tooComplexMessage(area: Area, { longest }: TooComplex): string {
  const own = `this area${verticesOf(area)}`;
  const which =
    longest === null ? own : `${own} or area ${longest.id}${verticesOf(longest)}, which takes longest`;
  return `the overlaps take longer to measure than a call may: simplify ${which}; fewer vertices, shorter edges and a wider buffer of a polyline help`;
}

function verticesOf({ definition: { geometry } }: Area): string {
  return 'points' in geometry ? ` (${geometry.points.length / 2} vertices)` : '';
}

/** There may be as many as an account may have areas, so their JSON is made in steps. */
function* answerOverlaps({ total, overlaps }: FoundOverlaps): Steps<Answer> {
  const items: string[] = [];
  for (const overlap of overlaps) {
    items.push(JSON.stringify(overlapView(overlap)));
    if (items.length % ITEMS_PER_STEP === 0) yield;
  }
  return jsonAnswer(`[${items.join(',')}]`, `{"total":${total}}`);
}

/** Wire form. */
function overlapView({ other, commonM2, share, shareOfOther }: Overlap) {
  return { area: areaName(other), overlap_m2: commonM2, share, share_of_other: shareOfOther };
}
