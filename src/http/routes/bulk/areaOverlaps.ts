import { scopeMask } from '../../../access/scopes.ts';
import { outlineOf, overlapM2 } from '../../../areas/overlap/overlap.ts';
import type { Steps } from '../../../base/workTurns.ts';
import type { Area } from '../../../memory/area.ts';
import type { AreaCatalog } from '../../../memory/areaCatalog.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../../answers/answer.ts';
import { AREA_OVERLAPS } from '../../openapi/operations/bulkOperations.ts';
import { idOf, malformedId } from '../../parameters/id.ts';
import type { Route } from '../route.ts';
import type { BulkCalls } from './bulkCalls.ts';

/** A smaller share of both areas is rounding along a common boundary, not a common interior. */
const LEAST_SHARE = 1e-9;
/** Items whose JSON is made between two looks at the clock. */
const ITEMS_PER_STEP = 100;

export interface AreaOverlapPorts {
  readonly areas: AreaCatalog;
  readonly bulkCalls: BulkCalls;
}

/** The areas whose interiors meet that of one area, largest overlap first. Answered from memory. */
export function areaOverlapsRoute({ areas, bulkCalls }: AreaOverlapPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/overlaps',
    scopes: scopeMask('read_areas'),
    versions: ['v3'],
    describe: AREA_OVERLAPS,
    handle: ({ caller, params }) => {
      const id = idOf(params);
      if (id === null) return malformedId();
      const area = areas.area(caller.worldIds, id);
      if (area === undefined) return errorAnswer('NOT_FOUND');
      const others = areas.meeting(caller.worldIds, area);
      return bulkCalls.run(caller.accountId, () => answerOverlaps(area, others));
    },
  };
}

export interface Overlap {
  readonly other: Area;
  readonly commonM2: number;
  /** Of the area that was asked about, and of the other one: above 0, at most 1. */
  readonly share: number;
  readonly shareOfOther: number;
}

/** There may be as many as an account may have areas, so their JSON is made in steps too. */
function* answerOverlaps(area: Area, others: Iterable<Area>): Steps<Answer> {
  const overlaps = yield* overlapsOf(area, others);
  const items: string[] = [];
  for (const overlap of overlaps) {
    items.push(JSON.stringify(overlapView(overlap)));
    if (items.length % ITEMS_PER_STEP === 0) yield;
  }
  return jsonAnswer(`[${items.join(',')}]`, `{"total":${overlaps.length}}`);
}

function* overlapsOf(area: Area, others: Iterable<Area>): Steps<Overlap[]> {
  const own = yield* outlineOf(area.definition.geometry);
  const overlaps: Overlap[] = [];
  for (const other of others) {
    if (other.id === area.id) continue;
    const outline = yield* outlineOf(other.definition.geometry);
    const commonM2 = yield* overlapM2(own, outline);
    const share = commonM2 / own.areaM2;
    const shareOfOther = commonM2 / outline.areaM2;
    if (Math.max(share, shareOfOther) > LEAST_SHARE) overlaps.push({ other, commonM2, share, shareOfOther });
    yield;
  }
  return overlaps.sort((a, b) => b.commonM2 - a.commonM2 || a.other.id - b.other.id);
}

/** Wire form. */
export function overlapView({ other: { id, definition }, commonM2, share, shareOfOther }: Overlap) {
  const { name, geometry, externalId } = definition;
  return {
    area: { id, name, type: geometry.type, external_id: externalId },
    overlap_m2: commonM2,
    share,
    share_of_other: shareOfOther,
  };
}
