import type { ServerResponse } from 'node:http';
import type { LiveBody, StreamSink } from './answer.ts';

/** Hands the connection to a body that writes until one side ends it. The headers are set, and are sent at once. */
export function sendLive(response: ServerResponse, body: LiveBody): void {
  response.flushHeaders();
  const stream = body.attach(sinkOf(response));
  if (response.destroyed) stream.close();
  else response.once('close', () => stream.close());
}

function sinkOf(response: ServerResponse): StreamSink {
  return {
    write: (bytes) => void response.write(bytes),
    get pendingBytes() {
      return response.writableLength;
    },
    onDrained: (listener) => {
      if (response.destroyed) {
        listener();
        return;
      }
      const go = () => {
        response.off('drain', go).off('close', go);
        listener();
      };
      response.on('drain', go).on('close', go);
    },
    end: (last) => {
      if (last === '') response.end();
      else response.end(last);
    },
    destroy: () => void response.destroy(),
  };
}
