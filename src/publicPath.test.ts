describe('the folder of chunks', () => {
  const app = 'public/plugins/kvbooth-inference-app/';
  it.each([
    ['the app', `/${app}module.js`, `/${app}`],
    ['a panel by its id', '/public/plugins/kvbooth-benchmarks-panel/module.js', `/${app}`],
    ['a panel with a version', 'public/plugins/kvbooth-routers-panel/module.js?_cache=0.3.0', app],
    ['a panel in the app’s folder', `https://cdn/${app}panels/routers/module.js`, `https://cdn/${app}`],
    ['an unknown address', undefined, app],
  ])('of %s', (_, uri, folder) => {
    Object.assign(globalThis, { __webpack_public_path__: '' });
    jest.doMock('amd-module', () => ({ __esModule: true, default: { uri } }), { virtual: true });
    jest.isolateModules(() => jest.requireActual('./publicPath'));
    expect(globalThis).toHaveProperty('__webpack_public_path__', folder);
  });
});
