import type { BenchCase } from '../../benchCase.ts';
import { measureChanges } from '../../feeds/changes.ts';
import { measurePages } from '../../feeds/pages.ts';
import { measureStreams } from '../../feeds/streams.ts';

export const feeds: BenchCase = {
  about:
    'changes and streams: an empty poll, a full page, a page of a million devices, and streams on two pods',
  run: async (context) => {
    context.say('changes in memory');
    const changes = measureChanges(context);
    context.say('pages over HTTP');
    const pages = await measurePages(context);
    context.say('streams');
    const streams = await measureStreams(context);
    return {
      kind: 'measured',
      size: `${changes.size}, ${pages.size}, ${streams.size}`,
      rows: [...changes.rows, ...pages.rows, ...streams.rows],
      metrics: { ...changes.metrics, ...pages.metrics, ...streams.metrics },
      notes: [
        'Readers of streams and senders of points run in one process of their own, on the same machine. The time of a stream ' +
          'runs from just before a point is posted to one pod until the other pod has sent the device to its reader.',
      ],
    };
  },
};
