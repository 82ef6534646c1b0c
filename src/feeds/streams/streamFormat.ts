import { formatIso } from '../../lib/isoTime.ts';
import type { ChangedJson } from '../changedJson.ts';
import { recordedEventView } from '../feedPages.ts';
import type { StreamFormat } from './streamGroup.ts';

/** Server-sent events (HTML standard, section 9.2.5): a type, a cursor and one line of JSON. */
export function streamFormat(changedJson: ChangedJson): StreamFormat {
  return {
    device: (item, id, nowMs) => message('device', id, changedJson.json(item, nowMs)),
    event: (event, id) => message('fleet_event', id, JSON.stringify(recordedEventView(event))),
    heartbeat: (id, nowMs) => message('heartbeat', id, `{"at":"${formatIso(nowMs)}"}`),
  };
}

function message(type: string, id: string, data: string): string {
  return `event: ${type}\nid: ${id}\ndata: ${data}\n\n`;
}
