/** Lango stays outside of the bundle: the SQLite driver is native, and providers are loaded on use. */
export default { serverExternalPackages: ['lango'], turbopack: { root: import.meta.dirname } }
