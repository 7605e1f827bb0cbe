/** The address of the document that draws diagrams; the build makes both. */
declare module 'virtual:diagram-page' {
  export const diagramPage: string
}
