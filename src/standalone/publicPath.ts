/** Sets where @grafana/ui loads its icons and fonts. It is imported first, because they are looked up only once. */
Object.assign(window, { __grafana_public_path__: '/public/' });

export {};
