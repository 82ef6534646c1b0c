import {
  clipLine,
  clipRing,
  doubleArea,
  type PlaneBox,
  type PlanePath,
  reversed,
  rounded,
  simplifyPath,
} from '../../areas/tiles/tilePaths.ts';
import { TILE_EXTENT, type Tile, type TilePath, TilePlane, VectorTile } from '../../geo/vectorTile.ts';
import type { Line, NaturalEarth, Polygon } from './naturalEarth.ts';
import type { WorldName } from './worldNames.ts';

/** What is drawn beyond the sides of a tile, so that no line ends at them. */
const MARGIN_UNITS = 64;
/** Twice the area of what is seen: a quarter of a pixel where a tile is 512 pixels wide. */
const SEEN_UNITS = 32;

/** A path on the plane of the one tile of zoom 0, and the box around it. */
interface Shape extends PlaneBox {
  readonly path: PlanePath;
}

/** Natural Earth on the plane of the map. */
export interface WorldShapes {
  /** An exterior ring, then holes. */
  readonly land: readonly (readonly Shape[])[];
  readonly lakes: readonly (readonly Shape[])[];
  readonly borders: readonly Shape[];
  readonly rivers: readonly Shape[];
}

export function worldShapes({ land, lakes, borders, rivers }: NaturalEarth): WorldShapes {
  const polygon = (rings: Polygon): Shape[] => rings.map((ring) => shapeOf(pathOf(ring.slice(0, -1))));
  const line = (positions: Line): Shape => shapeOf(pathOf(positions));
  return {
    land: land.map(polygon),
    lakes: lakes.map(polygon),
    borders: borders.map(line),
    rivers: rivers.map(line),
  };
}

/** What a tile and all below it show: of a continent with 100 000 points they need a few. */
export function shapesIn(shapes: WorldShapes, tile: Tile): WorldShapes {
  const { box } = viewOf(tile);
  const polygons = (all: WorldShapes['land']): Shape[][] =>
    all
      .map((rings) =>
        rings.filter((ring) => meets(ring, box)).map(({ path }) => shapeOf(clipRing(path, box))),
      )
      .filter(([exterior]) => exterior !== undefined && exterior.path.length > 0);
  const lines = (all: readonly Shape[]): Shape[] =>
    all.filter((line) => meets(line, box)).flatMap(({ path }) => clipLine(path, box).map(shapeOf));
  return {
    land: polygons(shapes.land),
    lakes: polygons(shapes.lakes),
    borders: lines(shapes.borders),
    rivers: lines(shapes.rivers),
  };
}

const MAP = new TilePlane({ z: 0, x: 0, y: 0 });

function pathOf(line: Line): PlanePath {
  return line.flatMap(([lng = 0, lat = 0]) => [MAP.x(lng), MAP.y(lat)]);
}

function shapeOf(path: PlanePath): Shape {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let at = 0; at < path.length; at += 2) {
    const [x, y] = [path[at] as number, path[at + 1] as number];
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  return { path, ...box };
}

/**
 * A tile with the layers `land`, `lakes`, `borders`, `rivers` and `names` (`kind`: country or place, `name`, `rank`); null
 * where there is only sea.
 */
export function worldTile(shapes: WorldShapes, names: readonly WorldName[], tile: Tile): Buffer | null {
  const view = viewOf(tile);
  const layers = [
    polygonLayer('land', shapes.land, view),
    polygonLayer('lakes', shapes.lakes, view),
    lineLayer('borders', shapes.borders, view),
    lineLayer('rivers', shapes.rivers, view),
    nameLayer(names, tile),
  ].filter((layer) => layer !== null);
  // A tile is the list of its layers.
  return layers.length === 0 ? null : Buffer.concat(layers);
}

/** A tile on the plane of zoom 0: its box with its margin, and how one becomes the other. */
interface View {
  readonly box: PlaneBox;
  readonly scale: number;
  readonly left: number;
  readonly top: number;
}

function viewOf({ z, x, y }: Tile): View {
  const scale = 2 ** z;
  const [left, top] = [TILE_EXTENT * x, TILE_EXTENT * y];
  const box = {
    left: (left - MARGIN_UNITS) / scale,
    top: (top - MARGIN_UNITS) / scale,
    right: (left + TILE_EXTENT + MARGIN_UNITS) / scale,
    bottom: (top + TILE_EXTENT + MARGIN_UNITS) / scale,
  };
  return { box, scale, left, top };
}

function polygonLayer(name: string, polygons: WorldShapes['land'], view: View): Buffer | null {
  const layer = new VectorTile(name);
  let isEmpty = true;
  for (const rings of polygons) {
    const paths: TilePath[] = [];
    for (const [n, ring] of rings.entries()) {
      if (!meets(ring, view.box)) continue;
      const path = rounded(simplifyPath(inTile(clipRing(ring.path, view.box), view)), true);
      const area = doubleArea(path);
      if (Math.abs(area) < SEEN_UNITS) {
        if (n === 0) break;
        continue;
      }
      paths.push((n === 0) === area > 0 ? path : reversed(path));
    }
    if (paths.length === 0) continue;
    layer.add(null, {}, { kind: 'polygon', paths });
    isEmpty = false;
  }
  return isEmpty ? null : layer.finish();
}

function lineLayer(name: string, lines: readonly Shape[], view: View): Buffer | null {
  const paths = lines
    .filter((line) => meets(line, view.box))
    .flatMap(({ path }) => clipLine(path, view.box))
    .map((part) => rounded(simplifyPath(inTile(part, view)), false))
    .filter((path) => path.length > 2);
  if (paths.length === 0) return null;
  const layer = new VectorTile(name);
  layer.add(null, {}, { kind: 'line', paths });
  return layer.finish();
}

/** A name is in one tile of each zoom. */
function nameLayer(names: readonly WorldName[], tile: Tile): Buffer | null {
  const plane = new TilePlane(tile);
  const layer = new VectorTile('names');
  let isEmpty = true;
  for (const { kind, name, lng, lat, from, rank } of names) {
    if (from > tile.z) continue;
    const [x, y] = [Math.floor(plane.x(lng)), Math.floor(plane.y(lat))];
    if (x < 0 || y < 0 || x >= TILE_EXTENT || y >= TILE_EXTENT) continue;
    layer.add(null, { kind, name, rank }, { kind: 'point', paths: [[x, y]] });
    isEmpty = false;
  }
  return isEmpty ? null : layer.finish();
}

function meets(shape: Shape, { left, top, right, bottom }: PlaneBox): boolean {
  return shape.left <= right && shape.right >= left && shape.top <= bottom && shape.bottom >= top;
}

function inTile(path: PlanePath, { scale, left, top }: View): number[] {
  return path.map((value, n) => value * scale - (n % 2 === 0 ? left : top));
}
