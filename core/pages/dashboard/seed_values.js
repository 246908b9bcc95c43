// The value of every seed of one claim of a sheet. People choose the claim in a list.
import { make, select } from './dom.js';
import { liveChart } from './charts.js';
import { get } from './live.js';

export class SeedValues {
  // `claims` are those whose seeds have a size.
  constructor(sweep, sheet, claims) {
    this.path = `/sweeps/${sweep}/seeds?sheet=${sheet}&claim=`;
    this.claim = '';
    this.chart = null;
    this.place = make('div');
    this.element = make('div');
    const options = [{ value: '', text: '– choose a claim –' },
                     ...claims.map(({ claim }) => ({ value: claim, text: claim }))];
    this.element.append(select('Every seed of ', options, '', (claim) => this.choose(claim)),
                        this.place);
  }

  choose(claim) {
    this.chart?.destroy();
    this.chart = null;
    this.place.replaceChildren();
    this.claim = claim;
    return this.load();
  }

  // Also when a round has ended.
  async load() {
    const { claim } = this;
    if (!claim) return;
    const { metric, fraction, sides, statistics } = await get(
      this.path + encodeURIComponent(claim));
    if (claim !== this.claim) return;  // another one was chosen meanwhile
    this.chart ??= liveChart(this.place, 'drawSeedValues', {
      title: claim, name: `seeds-${claim}`, description: 'A dot for each seed, pale if it has '
        + 'learned too little. The dashed lines are the limits that the claim names.'
    });
    await this.chart.update({ statistics, unit: fraction ? `${metric}, a fraction` : metric,
                              limits: [...new Set(sides.map((side) => side.limit))] });
  }
}
