import { GAP_MS } from '../summary/motionWalk.ts';
import type { ExportedDevice, TextFormat } from './historyEncoder.ts';
import { timeOf } from './textFormats.ts';

const NAMESPACES =
  'xmlns="http://www.topografix.com/GPX/1/1" xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2"';
const KMH_PER_M_S = 3.6;

/**
 * GPX 1.1: one track, with a segment for each part without a gap. Speed (m/s) and course are in the extension by Garmin,
 * which other programs read as well. GPX has no place for the odometer.
 */
export function gpxFormat({ imei, name }: ExportedDevice): TextFormat {
  let lastMs: number | null = null;
  return {
    begin: `<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="Fleet Tracking Service" ${NAMESPACES}>\n<trk><name>${xmlText(name ?? imei)}</name>`,
    point: (page, n) => {
      const ms = page.recordedAtMs[n] as number;
      let segment = '';
      if (lastMs === null) segment = '<trkseg>\n';
      else if (ms - lastMs > GAP_MS) segment = '</trkseg>\n<trkseg>\n';
      lastMs = ms;
      const lng = page.lngs[n] as number;
      // The schema has longitudes below 180 only.
      return (
        `${segment}<trkpt lat="${decimal(page.lats[n] as number)}" lon="${decimal(lng === 180 ? -180 : lng)}">` +
        `<ele>${decimal(page.altitudesM[n] as number)}</ele><time>${timeOf(page, n)}</time><sat>${page.satellites[n]}</sat>` +
        `<extensions><gpxtpx:TrackPointExtension><gpxtpx:speed>${decimal((page.speedsKmh[n] as number) / KMH_PER_M_S)}</gpxtpx:speed>` +
        `<gpxtpx:course>${decimal(page.headings[n] as number)}</gpxtpx:course></gpxtpx:TrackPointExtension></extensions></trkpt>\n`
      );
    },
    end: () => `${lastMs === null ? '' : '</trkseg>'}</trk>\n</gpx>\n`,
  };
}

/** Digits behind the point of numbers so small that JavaScript would write them with an exponent. */
const SMALL_DIGITS = 20;

/** A number without an exponent, which xsd:decimal does not have. */
function decimal(value: number): string {
  const text = `${value}`;
  if (!text.includes('e')) return text;
  return Math.abs(value) < 1 ? value.toFixed(SMALL_DIGITS) : BigInt(value).toString();
}

/** Not one of the characters of XML 1.0 (section 2.2). */
const NO_XML_CHARACTER = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

function xmlText(text: string): string {
  return text.replace(NO_XML_CHARACTER, '').replace(/[&<>]/g, (character) => ENTITIES[character] as string);
}
