/** What is worth knowing about an area that was accepted all the same. `code` is on the wire and fixed. */
export interface AreaWarning {
  readonly code: WarningCode;
  readonly message: string;
}

export type WarningCode =
  | 'warnHolesIgnored'
  | 'warnSimplifiedDuplicates'
  | 'warnVerySmallArea'
  | 'warnVeryLargeArea';

export const AREA_WARNINGS: { readonly [Code in WarningCode]: AreaWarning } = {
  warnHolesIgnored: {
    code: 'warnHolesIgnored',
    message: 'interior rings of the polygon are ignored: the area has no holes',
  },
  warnSimplifiedDuplicates: {
    code: 'warnSimplifiedDuplicates',
    message: 'vertices closer than 0.1 m to the one before them were dropped',
  },
  warnVerySmallArea: { code: 'warnVerySmallArea', message: 'the area is smaller than 100 m²' },
  warnVeryLargeArea: { code: 'warnVeryLargeArea', message: 'the area is larger than 10 000 km²' },
};

/** The warnings that follow from an area's size; null (places and tracks have none) gives none. */
export function sizeWarnings(areaM2: number | null): AreaWarning[] {
  if (areaM2 === null) return [];
  if (areaM2 < VERY_SMALL_M2) return [AREA_WARNINGS.warnVerySmallArea];
  return areaM2 > VERY_LARGE_M2 ? [AREA_WARNINGS.warnVeryLargeArea] : [];
}

const VERY_SMALL_M2 = 100;
const VERY_LARGE_M2 = 10_000 * 1e6;
