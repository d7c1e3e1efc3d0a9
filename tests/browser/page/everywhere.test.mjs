/** Every page, in every size and in both colour schemes, with live data: whole, accessible, and in a picture. */
import { violations } from '../axe.mjs';
import { firstTurn, start } from '../booth.mjs';
import { cuts } from '../layout.mjs';
import { addresses, expect, host, inGrafanaToo, Page, shoot, test } from './page.mjs';

const VIEWS = [
  { width: 1920, height: 1080, colorScheme: 'dark', picture: true },
  { width: 1280, height: 720, colorScheme: 'light', picture: true, where: inGrafanaToo },
  { width: 640, height: 360, colorScheme: 'dark', deviceScaleFactor: 2, zoomed: true }, // 1280×720 at 200 %
];

for (const { width, height, picture, zoomed, where = {}, ...browser } of VIEWS) {
  const view = `${width}×${height} ${browser.colorScheme}${zoomed ? ' at 200 %' : ''}`;
  test(`every page, ${view}`, where, async ({ visit }) => {
    await start();
    await firstTurn();
    const page = await visit({ width, height, browser });
    const faults = [];
    for (const { path: address, title } of await addresses()) {
      const booth = await Page.open(page, address);
      await booth.says(/Starting|Settling|Running/);
      await booth.settled();
      await expect(page.getByText('cannot be shown'), title).toHaveCount(0);
      const found = await violations(page, host.ours);
      faults.push(...found.map((fault) => `${title}: ${fault}`));
      faults.push(...(await cuts(page, host.ours)).map((fault) => `${title}: ${fault}`));
      if (picture) {
        const name = `${title}-${browser.colorScheme}-${width}x${height}`.toLowerCase().replace(/[^a-z0-9-]+/g, '-');
        await shoot(page, name);
        await shoot(page, `${name}-whole`, { whole: true });
      }
    }
    console.log(`${faults.length} faults`);
    expect(faults).toEqual([]);
  });
}
