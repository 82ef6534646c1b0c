/** An event of a recording: seconds from its first point, to the event and to the first point inside. */
export type Visit = readonly [atSeconds: number, event: 'entry' | 'exit', area: string, sinceSeconds: number];

export interface RecordedTrip {
  readonly imei: string;
  readonly title: string;
  /** Bodies of POST /areas. No recorded point lies nearer to an edge than one part in a hundred of the area's size. */
  readonly areas: readonly (Readonly<Record<string, unknown>> & { readonly name: string })[];
  /** In the order of production. */
  readonly visits: readonly Visit[];
}

const place = (lat: number, lng: number) => ({ lat, lng });
const circle = (name: string, lat: number, lng: number, radiusM: number, dwellSeconds = 0) => ({
  name,
  type: 'circle',
  center: place(lat, lng),
  radius_m: radiusM,
  dwell_seconds: dwellSeconds,
});
const polygon = (name: string, points: readonly object[], dwellSeconds = 0) => ({
  name,
  type: 'polygon',
  points,
  dwell_seconds: dwellSeconds,
});
const track = (name: string, points: readonly object[], bufferM: number, dwellSeconds = 0) => ({
  name,
  type: 'polyline',
  points,
  buffer_m: bufferM,
  dwell_seconds: dwellSeconds,
});

/**
 * What two of the recordings show of areas in Istria and around Planina. Computed from the file with the haversine
 * formula and a ray cast, none of it by this service.
 */
export const ISTRIA_TRIPS: readonly RecordedTrip[] = [
  {
    imei: '352093081234501',
    title: 'a car drives from home to an errand of two minutes and back',
    areas: [
      { name: 'Home', type: 'point', center: place(45.2734, 13.7141) },
      circle('Home for a minute', 45.2734, 13.7141, 60, 60),
      circle('Errand', 45.27633, 13.71978, 40, 90),
      // Driven through in seven seconds.
      circle('Crossroads', 45.2809, 13.7199, 60, 300),
      track(
        'Country road',
        [place(45.2738, 13.7121), place(45.2763, 13.7143), place(45.2784, 13.71605), place(45.2806, 13.7191)],
        60,
      ),
      polygon('Hillside', [
        place(45.2755, 13.7189),
        place(45.2755, 13.7232),
        place(45.2815, 13.7232),
        place(45.2815, 13.7189),
      ]),
    ],
    visits: [
      [0, 'entry', 'Home', 0],
      [60, 'entry', 'Home for a minute', 0],
      [75, 'exit', 'Home', 0],
      [75, 'exit', 'Home for a minute', 0],
      [101, 'entry', 'Country road', 101],
      [144, 'entry', 'Hillside', 144],
      [149, 'exit', 'Country road', 101],
      // There from 221 on; no point came between 287 and 336, so the ninety seconds are over at 336.
      [336, 'entry', 'Errand', 221],
      [355, 'exit', 'Errand', 221],
      [363, 'exit', 'Hillside', 144],
      [406, 'entry', 'Home', 406],
      [486, 'entry', 'Home for a minute', 406],
    ],
  },
  {
    imei: '352093081234503',
    title: 'a walk that passes a crossing twice and ends in a town, with gaps of a quarter of an hour',
    areas: [
      circle('Crossing', 45.7672, 14.3604, 120),
      circle('Southern end', 45.7441, 14.3667, 300),
      polygon(
        'Northern town',
        [place(45.7895, 14.301), place(45.7895, 14.308), place(45.793, 14.308), place(45.793, 14.301)],
        300,
      ),
    ],
    visits: [
      [1_971, 'entry', 'Crossing', 1_971],
      [2_194, 'exit', 'Crossing', 1_971],
      [2_952, 'entry', 'Crossing', 2_952],
      [2_984, 'exit', 'Crossing', 2_952],
      [3_626, 'entry', 'Southern end', 3_626],
      // The first point after the gap is already elsewhere.
      [4_490, 'exit', 'Southern end', 3_626],
      [6_052, 'entry', 'Northern town', 5_672],
    ],
  },
];

/**
 * The walk again, moved into the Alban Hills, against all municipalities of Lazio. Grottaferrata has
 * two parts, each an area. No point lies nearer to a boundary than 3.9 m.
 */
export const LAZIO_TRIP = {
  imei: '352093081234503',
  shift: { latitude: -4, longitude: -1.68 },
  visits: [
    [0, 'entry', 'Marino', 0],
    [2_984, 'exit', 'Marino', 0],
    [2_984, 'entry', 'Grottaferrata (1)', 2_984],
    [3_626, 'exit', 'Grottaferrata (1)', 2_984],
    [3_626, 'entry', 'Albano Laziale', 3_626],
    [4_490, 'exit', 'Albano Laziale', 3_626],
    [4_490, 'entry', 'Rocca di Papa', 4_490],
    [4_513, 'exit', 'Rocca di Papa', 4_490],
    [4_513, 'entry', 'Grottaferrata (1)', 4_513],
    [5_672, 'exit', 'Grottaferrata (1)', 4_513],
    [5_672, 'entry', 'Ciampino', 5_672],
  ] satisfies readonly Visit[],
} as const;
