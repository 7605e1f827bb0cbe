export default function Page() {
  return <p>Lango in Next.js</p>
}
