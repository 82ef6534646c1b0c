import type { LatLng } from '../../geo/latLng.ts';
import type { FieldError } from '../../lib/fieldError.ts';
import type { Result } from '../../lib/result.ts';
import type { AreaType, Vertices } from '../area.ts';

/**
 * The fields of one request body, parsed. Which of them belong to the area is known only with the stored area
 * (mergeDraft.ts). Plain data, so that another process can send it.
 */
export interface AreaDraft {
  readonly name: Sent<string>;
  readonly color: Sent<string>;
  readonly type: Sent<AreaType>;
  /** Nobody said the type: it follows from a GeoJSON Point, which fits a stored circle just as well as a place. */
  readonly typeIsAssumed: boolean;
  readonly center: Sent<LatLng>;
  /** As sent, NaN when it was not a number: its range depends on the type. */
  readonly radiusM: number | undefined;
  /** As sent, NaN when it was not a number; another type than polyline ignores it. */
  readonly bufferM: number | undefined;
  readonly points: Sent<DraftPoints>;
  /** null: the stored one is to be removed. */
  readonly externalId: Sent<string | null>;
  readonly dwellSeconds: Sent<number>;
  /** Set when `geojson` was sent and holds no geometry of one area; nothing is known about the geometry then. */
  readonly geojsonError: FieldError | null;
  /** The polygon came with interior rings, which were dropped. */
  readonly hadHoles: boolean;
}

/** A field of a body: undefined when not sent (or null), else its value, or what is wrong with it. */
export type Sent<T> = Result<T, FieldError> | undefined;

export interface DraftPoints {
  readonly points: Vertices;
  /** The type by whose rules the points were normalised and found sound; null while the type is unknown. */
  readonly validatedAs: 'polygon' | 'polyline' | null;
  /** Nearly coincident vertices were dropped. */
  readonly simplified: boolean;
}
