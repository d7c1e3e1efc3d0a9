// Chunks are loaded from the folder from which Grafana has loaded the module.
import module from 'amd-module';

__webpack_public_path__ = module?.uri
  ? module.uri.slice(0, module.uri.lastIndexOf('/') + 1)
  : 'public/plugins/kvbooth-inference-app/';
