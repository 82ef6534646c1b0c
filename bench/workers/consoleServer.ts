import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import express from 'express';
import { CidrSet } from '../../src/access/ipAddress.ts';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { consoleRoutes } from '../../src/console/consolePage.ts';
import { WorldTiles } from '../../src/console/world/worldTiles.ts';
import { listen } from '../setup/listen.ts';
import { answerQuestions } from '../worker.ts';

export type ConsoleQuestion =
  | { readonly kind: 'start' }
  /**
   * How many vehicles whoever opens the stream from now on gets; a tenth of them changes each second. `town`: where the
   * first of them are near to each other; null: all are far apart.
   */
  | { readonly kind: 'vehicles'; readonly count: number; readonly town: Place | null };

interface Place {
  readonly lat: number;
  readonly lng: number;
}

const TICK_MS = 100;
const SHARE_PER_TICK = 0.01;
const STEP_DEG = 0.002;
const TOWN_VEHICLES = 400;
const TOWN_DEG = 0.1;

// A worker: the console as the service serves it, and of the API the answers that a view of the map needs. The stream
// is that of the service in form and in behaviour: who does not read gets fewer changes, not older ones.
let port = 0;
let vehicles = 0;
let town: Place | null = null;
/** Answers its port. */
answerQuestions(async (question: ConsoleQuestion): Promise<number> => {
  if (question.kind === 'start') port = await serve();
  else {
    vehicles = question.count;
    town = question.town;
  }
  return port;
});

function serve(): Promise<number> {
  const app = express();
  consoleRoutes(app, {
    consoleTiles: null,
    trustedProxies: new CidrSet([]),
    worldTiles: new WorldTiles(),
    log: console,
  });
  app.get('/api/v1/stream', (_, response) => void stream(response, vehicles));
  app.get('/api/*path', (_, response) => void response.json({ data: [], meta: { total: 0 } }));
  app.get('/*path', (_, response) => void response.status(204).end()); // the icon
  return listen(createServer(app));
}

async function stream(response: ServerResponse, count: number): Promise<void> {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (let index = 0; index < count && !response.closed; index++)
    if (!response.write(message(index, 0))) await once(response, 'drain');
  let next = 0;
  let round = 1;
  const timer = setInterval(() => {
    if (response.writableNeedDrain) return;
    const texts: string[] = [];
    for (let change = 0; change < count * SHARE_PER_TICK; change++) {
      texts.push(message(next, round));
      next = (next + 7_919) % count; // a prime: not one after the other
      if (next < 7_919) round++;
    }
    response.write(texts.join(''));
  }, TICK_MS);
  response.once('close', () => clearInterval(timer));
}

/** A vehicle in Europe that drives around a place of its own. */
function message(index: number, round: number): string {
  const angle = index + round * 0.5;
  const imei = simulatedImei(index);
  const [partOfNorth, partOfEast] = [(index * 0.618) % 1, (index * 0.755) % 1];
  const home =
    town !== null && index < TOWN_VEHICLES
      ? { lat: town.lat + (partOfNorth - 0.5) * TOWN_DEG, lng: town.lng + (partOfEast - 0.5) * TOWN_DEG }
      : { lat: 38 + partOfNorth * 20, lng: -5 + partOfEast * 30 };
  const device = {
    id: imei,
    imei,
    name: `Vehicle ${index}`,
    plate: `GA ${index} KL`,
    device_model: null,
    odometer_km: 12_345.6,
    status: 'moving',
    groups: [],
    location: {
      latitude: home.lat + Math.cos(angle) * STEP_DEG,
      longitude: home.lng + Math.sin(angle) * STEP_DEG,
      speed_kmh: 42,
      recorded_at: new Date(Date.now()).toISOString(),
      heading: (angle * 57) % 360,
      altitude_m: 120,
    },
    updated_at: new Date().toISOString(),
    ignition: true,
  };
  return `event: device\nid: ${index}-${round}\ndata: ${JSON.stringify(device)}\n\n`;
}
