/** Seconds that answers of one kind took: counts[i] of at most the i-th bound and more than the one before. */
interface Series {
  readonly counts: Float64Array;
  sumSeconds: number;
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * A histogram of answered requests by route, method and status, in the form that a registry of prom-client takes.
 * prom-client's own builds, validates and hashes an object of labels for each observation; here it is three look-ups
 * and two additions. Routes are patterns of the code, never paths, so the series are few.
 */
export class RequestDurations {
  readonly name = 'fleet_http_request_duration_seconds';
  readonly help = 'Duration of answered requests by route and status.';
  readonly type = 'histogram';
  readonly #boundsSeconds: readonly number[];
  readonly #byRoute = new Map<string, Map<string, Map<number, Series>>>();

  /** `boundsSeconds` ascending; what took longer than the last counts as well. */
  constructor(boundsSeconds: readonly number[]) {
    this.#boundsSeconds = boundsSeconds;
  }

  observe(route: string, method: string, status: number, seconds: number): void {
    const series = this.#byRoute.get(route)?.get(method)?.get(status) ?? this.#open(route, method, status);
    let bucket = 0;
    while (bucket < this.#boundsSeconds.length && seconds > (this.#boundsSeconds[bucket] as number)) bucket++;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sumSeconds += seconds;
  }

  /** Asked by the registry. */
  get(): Promise<{ name: string; help: string; type: string; values: Sample[]; aggregator: string }> {
    const values: Sample[] = [];
    for (const [route, byMethod] of this.#byRoute) {
      for (const [method, byStatus] of byMethod) {
        for (const [status, series] of byStatus)
          values.push(...this.#samples({ route, method, status }, series));
      }
    }
    return Promise.resolve({ name: this.name, help: this.help, type: this.type, values, aggregator: 'sum' });
  }

  /** Buckets are cumulative, as the exposition format has them. */
  #samples(labels: Sample['labels'], { counts, sumSeconds }: Series): Sample[] {
    let total = 0;
    const buckets = Array.from(counts, (count, at): Sample => {
      total += count;
      const le = this.#boundsSeconds[at] ?? '+Inf';
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sumSeconds },
      { metricName: `${this.name}_count`, labels, value: total },
    ];
  }

  #open(route: string, method: string, status: number): Series {
    const byMethod = this.#byRoute.get(route) ?? new Map<string, Map<number, Series>>();
    const byStatus = byMethod.get(method) ?? new Map<number, Series>();
    const series = { counts: new Float64Array(this.#boundsSeconds.length + 1), sumSeconds: 0 };
    this.#byRoute.set(route, byMethod.set(method, byStatus.set(status, series)));
    return series;
  }
}
