/** Runs the journeys that JOURNEYS names, one after another and with one browser. */
for (const name of (process.env.JOURNEYS ?? 'dashboards,operate').split(',')) {
  await import(`./${name}.test.mjs`);
}
