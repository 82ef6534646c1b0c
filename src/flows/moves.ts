import type { LatestPosition } from '../engine/device.ts';

/** A device that moved, as the change feed carries it to the other pods. */
export interface Move {
  readonly deviceId: number;
  readonly position: LatestPosition;
}

/** Eight little-endian doubles a move. NaN stands for an odometer that was never known. */
const FIELDS = 8;
const MOVE_BYTES = FIELDS * 8;

/** Moves → bytes of the feed's payload. */
export function encodeMoves(moves: readonly Move[]): Buffer {
  const bytes = Buffer.alloc(moves.length * MOVE_BYTES);
  let at = 0;
  for (const { deviceId, position } of moves) {
    for (const value of [
      deviceId,
      position.recordedAtMs,
      position.lat,
      position.lng,
      position.altitudeM,
      position.speedKmh,
      position.odometerKm ?? Number.NaN,
      position.movedAtMs,
    ]) {
      at = bytes.writeDoubleLE(value, at);
    }
  }
  return bytes;
}

/** The inverse of `encodeMoves`, one after the other. */
export function* decodeMoves(bytes: Buffer): Generator<Move, void> {
  for (let at = 0; at + MOVE_BYTES <= bytes.length; at += MOVE_BYTES) {
    const value = (field: number): number => bytes.readDoubleLE(at + field * 8);
    const odometerKm = value(6);
    yield {
      deviceId: value(0),
      position: {
        recordedAtMs: value(1),
        lat: value(2),
        lng: value(3),
        altitudeM: value(4),
        speedKmh: value(5),
        odometerKm: Number.isNaN(odometerKm) ? null : odometerKm,
        movedAtMs: value(7),
      },
    };
  }
}
