/**
 * ADK looks tools and state up with `in` and with `object[name]`, which also find what every object inherits:
 * `constructor`, `toString`, `__proto__` and their kin. Objects that ADK looks foreign names up in lose their
 * prototype here, in place, because ADK holds on to the object that it made.
 */
export function withoutInheritedNames<Fields extends object>(fields: Fields): Fields {
  if (Object.getPrototypeOf(fields) !== null) Object.setPrototypeOf(fields, null)
  return fields
}
