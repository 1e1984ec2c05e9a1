// A server that allows LIMIT requests in WINDOW milliseconds; it prints its port.
import express from 'express'
import { rateLimit } from 'express-rate-limit'

const [limit, windowMs] = process.argv.slice(2).map(Number)
const app = express()
app.use(rateLimit({ windowMs, limit, standardHeaders: 'draft-6', legacyHeaders: false }))
app.get('/', (req, res) => res.send('hello'))
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port))
