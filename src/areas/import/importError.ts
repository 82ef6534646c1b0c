import type { FieldCode, FieldError } from '../../lib/fieldError.ts';
import type { AreaType } from '../area.ts';
import { GEOMETRY_ERRORS, type GeometryPart } from './geojsonIn.ts';

/**
 * Why a feature, or one part of it, makes no area: an element of an import's errors[]. Two families, which differ by
 * `message`: codes of reading GeoJSON have none, validation codes of the resulting area and
 * MULTI_GEOMETRY_EXTERNAL_ID have one.
 */
export interface ImportError {
  /** The index of the feature, from 0; -1 for the call as a whole. */
  readonly index: number;
  readonly code: ReadingCode | FieldCode | 'MULTI_GEOMETRY_EXTERNAL_ID';
  readonly message?: string;
}

export const READING_CODES = [
  ...GEOMETRY_ERRORS,
  'errCoordinates',
  'errTooManyPoints',
  'errPolygonMin',
  'errPolylineMin',
  'errTooManyFeatures',
] as const;

export type ReadingCode = (typeof READING_CODES)[number];

/** The validation code of a resulting area. */
export function fieldImportError(index: number, { code, message }: FieldError): ImportError {
  return { index, code, message };
}

/** What is wrong with the positions of a part, in the codes of reading; null when an area results. */
export function readingImportError(part: GeometryPart): ReadingCode | null {
  const positions = part.type === 'point' ? part.center : part.points;
  return positions.ok ? null : readingCode(part.type, positions.error.code);
}

/** Where a code of the first family says the same as one of the second, import uses the first. */
function readingCode(type: AreaType, code: FieldCode): ReadingCode | null {
  switch (code) {
    case 'INVALID_COORDINATES':
      return 'errCoordinates';
    case 'TOO_MANY_POINTS':
      return 'errTooManyPoints';
    case 'TOO_FEW_POINTS':
      return type === 'polygon' ? 'errPolygonMin' : 'errPolylineMin';
    default:
      return null;
  }
}
