/** Where @grafana/ui finds its icons and fonts. It comes before all else, since they look once. */
Object.assign(window, { __grafana_public_path__: '/public/' });

export {};
