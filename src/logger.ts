/** The interface of a log. pino, winston and `console` implement it. */
export interface Logger {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void
  info(message: string, fields?: Readonly<Record<string, unknown>>): void
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void
  error(message: string, fields?: Readonly<Record<string, unknown>>): void
}

const ignore = () => {}

/** Writes nothing: the default of a library. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }
