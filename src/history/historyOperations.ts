import { EXPORT_TYPES } from './export/exportFormats.ts';

export const { ndjson, ...OTHER_TYPES } = EXPORT_TYPES;
