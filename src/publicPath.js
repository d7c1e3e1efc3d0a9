// Chunks are loaded from the folder from which Grafana has loaded the app. A panel's module has a folder of its own,
// without chunks: its id in place of the app's, or panels/NAME inside the app's.
import module from 'amd-module';

const APP = 'kvbooth-inference-app/';

__webpack_public_path__ = module?.uri
  ? module.uri
      .slice(0, module.uri.lastIndexOf('/') + 1)
      .replace(/kvbooth-\w+-panel\/$/, APP)
      .replace(/panels\/\w+\/$/, '')
  : `public/plugins/${APP}`;
