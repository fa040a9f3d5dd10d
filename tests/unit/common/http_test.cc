// The HTTP server of common/http on loopback: requests of an ordinary client library, and raw
// bytes where a client library would not send them.
#include "common/base/utf8.h"
#include "http_fixture.h"

namespace rt::http {
namespace {

TEST_F(HttpTest, RoutesByMethodAndPath) {
  begin();
  auto http = client();
  EXPECT_EQ(http.Get("/items/a%20b?n=3")->body, "a b 3");
  EXPECT_EQ(http.Get("/items/x")->body, "x none");
  EXPECT_EQ(http.Head("/items/x")->status, 200);
  EXPECT_EQ(http.Get("/items/x/y")->status, 404);
  EXPECT_EQ(http.Post("/items/x", "", "text/plain")->status, 405);
  EXPECT_EQ(http.Get("/echo")->status, 405);
  EXPECT_EQ(http.Post("/echo", "{\"a\": 1}", "application/json")->body, "{\"a\": 1}");
  auto raised = http.Get("/raises");
  EXPECT_EQ(raised->status, 500);
  EXPECT_THAT(raised->body, HasSubstr("of the handler"));
}

TEST_F(HttpTest, TheTokenIsTakenFromThreePlaces) {
  begin();
  httplib::Client http = plain_client();
  EXPECT_EQ(http.Get("/open")->body, "for all");
  auto missing = http.Get("/items/x");
  EXPECT_EQ(missing->status, 401);
  EXPECT_EQ(missing->body, "Unauthorized: Missing authentication token");
  EXPECT_EQ(http.Get("/no/such")->status, 401);
  for (const char* wrong :
       {"Bearer other", "secret", "Bearer ", "Bearer secretsecret", "Basic secret"}) {
    auto refused = http.Get("/items/x", {{"Authorization", wrong}});
    EXPECT_EQ(refused->status, 403) << wrong;
    EXPECT_EQ(refused->body, "Forbidden: Invalid authentication token");
  }
  EXPECT_EQ(http.Get("/items/x", {{"X-Ray-Authorization", "Bearer secret"}})->status, 200);
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", "a=b; ray-authentication-token=secret; c=d"}})->status,
            200);
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", "ray-authentication-token=no"}})->status, 403);
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", "xray-authentication-token=secret"}})->status, 401);
}

TEST_F(HttpTest, WithoutATokenEverybodyMayAsk) {
  begin({});
  EXPECT_EQ(plain_client().Get("/items/x")->status, 200);
}

TEST_F(HttpTest, BrowsersReadAndActForNobodyElse) {
  begin();
  auto http = client();
  EXPECT_EQ(http.Get("/items/x", {{"User-Agent", "Mozilla/5.0"}})->status, 200);
  auto refused =
      http.Post("/echo", httplib::Headers{{"User-Agent", "Mozilla/5.0"}}, "{}", "application/json");
  EXPECT_EQ(refused->status, 405);
  EXPECT_EQ(refused->body, "'POST' method not allowed for browser traffic.");
  EXPECT_EQ(
      http.Post("/echo", httplib::Headers{{"Origin", "http://other"}}, "{}", "application/json")
          ->status,
      405);
  EXPECT_EQ(http.Get("/items/x", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}})
                ->status,
            403);
  EXPECT_EQ(
      http.Get("/items/x", {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}})->status,
      200);
}

TEST_F(HttpTest, TheCookieIsNotForPagesOfOtherOrigins) {
  begin();
  httplib::Client http = plain_client();
  auto asked = [&](const std::string& origin, const std::string& host) {
    return http
        .Get("/items/x",
             {{"Cookie", "ray-authentication-token=secret"}, {"Origin", origin}, {"Host", host}})
        ->status;
  };
  for (const char* host : {"head:8265", "HEAD:8265"})
    EXPECT_EQ(asked("http://head:8265", host), 200) << host;
  EXPECT_EQ(asked("https://head:8265", "head:8265"), 200);
  EXPECT_EQ(asked("https://head", "head:443"), 200);
  EXPECT_EQ(asked("http://[::1]:8265", "[::1]:8265"), 200);
  for (const char* origin :
       {"http://evil.com", "http://head", "http://head:8266", "http://head:8265.evil.com",
        "https://evil.com/head:8265", "null", "head:8265", "file://head:8265"}) {
    EXPECT_EQ(asked(origin, "head:8265"), 403) << origin;
  }
  // A program that sends the token in a header, and routes that need no token, are not bound to an
  // origin.
  EXPECT_EQ(client().Get("/items/x", {{"Origin", "http://evil.com"}})->status, 200);
  EXPECT_EQ(client()
                .Get("/items/x",
                     {{"Origin", "http://evil.com"}, {"Cookie", "ray-authentication-token=secret"}})
                ->status,
            200);
  EXPECT_EQ(http.Get("/open", {{"Origin", "http://evil.com"}})->status, 200);
  EXPECT_EQ(http.Get("/items/x", {{"Origin", "http://evil.com"}})->status, 401);
  httplib::Headers blank = {{"Cookie", "ray-authentication-token=secret"},
                            {"Origin", "http://evil.com"},
                            {"Authorization", ""}};
  EXPECT_EQ(http.Get("/items/x", blank)->status, 403) << "a header without a token is no token";
  const httplib::Headers other = {{"Cookie", "ray-authentication-token=secret"},
                                  {"Origin", "http://evil.com"}};
  EXPECT_EQ(http.Post("/echo", other, "{}", "application/json")->status, 403);
}

TEST_F(HttpTest, PagesOfOtherOriginsStartNoWebSocket) {
  begin();
  for (const char* origin : {"http://evil.com", "null", "http://h:8265"})
    EXPECT_THAT(exchange(handshake("/talk/ann", "secret", fmt::format("Origin: {}\r\n", origin))),
                HasSubstr(" 403 "))
        << origin;
  int fd = raw();
  const std::string own = handshake("/talk/ann", "secret", "Origin: http://h\r\n");
  ::send(fd, own.data(), own.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "\r\n"), HasSubstr(" 101 "));
  ::close(fd);
}

TEST_F(HttpTest, BodiesOfUnauthenticatedRequestsAreNotRead) {
  begin();
  // Announced, endless and compressed bodies: the answer does not wait for them, and the
  // connection ends.
  for (const char* head :
       {"POST /echo HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n",
        "PUT /none HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n",
        "POST /echo HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n",
        "PATCH /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "DELETE /echo HTTP/1.1\r\nContent-Type: multipart/form-data; "
        "boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /items/x HTTP/1.1\r\nContent-Length: 1000\r\n\r\n"}) {
    const std::string answer = exchange(head);
    EXPECT_THAT(answer,
                testing::AllOf(HasSubstr("401 Unauthorized"), HasSubstr("Connection: close")))
        << head;
  }
  EXPECT_THAT(exchange("PRI * HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), HasSubstr("405"));
}

TEST_F(HttpTest, OpenRoutesReadLittle) {
  begin();
  httplib::Client http = plain_client();
  const std::string most(64 << 10, 'x');
  EXPECT_EQ(http.Post("/open", most, "text/plain")->body, "65536 bytes");
  EXPECT_EQ(http.Post("/open", most + "x", "text/plain")->status, 413);
  http.set_compress(true);
  EXPECT_EQ(http.Post("/open", std::string(10 << 20, 'x'), "text/plain")->status, 413);
  EXPECT_EQ(client().Post("/echo", most + "x", "text/plain")->status, 200);
}

TEST_F(HttpTest, RequestSmugglingEndsTheConnection) {
  begin();
  // The body looks like a second request (request smuggling); the server must never serve it as
  // one.
  using namespace std::string_literals;
  const std::string known = "Authorization: Bearer secret\r\n",
                    hidden = "GET /items/hidden HTTP/1.1\r\n" + known + "\r\n",
                    length = fmt::format("{}", hidden.size());
  for (const std::string& head :
       {"POST /echo HTTP/1.1\r\n" + known + "Content-Length : " + length,
        "POST /echo HTTP/1.1\r\n" + known + "Content-Length: " + length + "\nX: y",
        "POST /echo HTTP/1.1\r\n" + known + " Content-Length: " + length,
        "POST /echo HTTP/1.1\r\n" + known + "X\r\n Content-Length: " + length,
        "POST /echo HTTP/1.1\r\n" + known + "Content-Length\r\nX: y",
        "POST  /echo HTTP/1.1\r\nContent-Length: " + length,
        "POST /echo HTTP/2.0\r\nContent-Length: " + length,
        "POST /echo\r\nContent-Length: " + length,
        "P(ST /echo HTTP/1.1\r\nContent-Length: " + length,
        "POST /echo HTTP/1.1\r\nContent-\tLength: " + length,
        "POST /echo HTTP/1.1\r\nX: \0y\r\nContent-Length: "s + length}) {
    EXPECT_THAT(exchange(head + "\r\n\r\n" + hidden),
                testing::AllOf(HasSubstr("400 Bad Request"), HasSubstr("Connection: close"),
                               testing::Not(HasSubstr("hidden none"))))
        << head;
  }
  for (const char* method : {"TRACE", "CONNECT", "BREW", "PRI", "get"}) {
    EXPECT_THAT(exchange(fmt::format("{} /echo HTTP/1.1\r\n{}Content-Length: {}\r\n\r\n{}", method,
                                     known, length, hidden)),
                testing::AllOf(HasSubstr("405 Method Not Allowed"), HasSubstr("Connection: close"),
                               testing::Not(HasSubstr("hidden none"))))
        << method;
  }
  // The server closes the connection at once, and its header does not offer keep-alive.
  int fd = raw();
  const std::string refused = "POST /items/x HTTP/1.1\r\nContent-Length: 5\r\n\r\n";
  ::send(fd, refused.data(), refused.size(), MSG_NOSIGNAL);
  const std::string answer = read_until(fd, "never");
  EXPECT_THAT(answer, testing::AllOf(HasSubstr("Connection: close"),
                                     testing::Not(HasSubstr("Keep-Alive"))));
  ::close(fd);
}

TEST_F(HttpTest, ASessionReadsAndEnds) {
  Sessions sessions;
  const std::string first = sessions.open(1000);
  EXPECT_EQ(first.size(), 64u);
  EXPECT_TRUE(sessions.knows(first, 1000 + Sessions::kSeconds - 1));
  EXPECT_FALSE(sessions.knows(first, 1000 + Sessions::kSeconds));
  EXPECT_FALSE(sessions.knows("", 1000));
  for (size_t i = 0; i < Sessions::kMaxSessions; ++i) EXPECT_NE(sessions.open(2000), first);
  EXPECT_FALSE(sessions.knows(first, 2000)) << "the one that ends first makes room";
  begin();
  const std::string cookie =
      "ray-authentication-token=" + server->sessions().open(steady_now_us() / 1'000'000);
  httplib::Client http = plain_client();
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", cookie}})->status, 200);
  auto writes = http.Post("/echo", {{"Cookie", cookie}}, "{}", "application/json");
  EXPECT_EQ(writes->status, 403);
  EXPECT_THAT(writes->body, HasSubstr("may only read"));
  EXPECT_EQ(
      http.Post("/echo", {{"Cookie", "ray-authentication-token=secret"}}, "{}", "application/json")
          ->status,
      200);
  server->sessions().close(cookie.substr(cookie.find('=') + 1));
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", cookie}})->status, 403);
}

TEST_F(HttpTest, BodiesHaveOneLengthAndABound) {
  begin({.token = "secret", .max_body_bytes = 1000});
  const std::string start = "POST /echo HTTP/1.1\r\nAuthorization: Bearer secret\r\n";
  EXPECT_THAT(exchange(start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
              HasSubstr("\r\n\r\nabc"));
  // 2000 bytes in two chunks; 100,000 zeros as 133 bytes of gzip.
  EXPECT_THAT(exchange(start + "Transfer-Encoding: chunked\r\n\r\n" + two_chunks(1000)),
              HasSubstr("413"));
  httplib::Client http = client();
  http.set_compress(true);
  EXPECT_EQ(http.Post("/echo", std::string(1000, 'x'), "text/plain")->body, std::string(1000, 'x'));
  EXPECT_EQ(http.Post("/echo", std::string(100'000, 'x'), "text/plain")->status, 413);
  for (const char* framing :
       {"Content-Length: -1", "Content-Length: abc", "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1\r\nTransfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"}) {
    EXPECT_THAT(exchange(start + framing + "\r\n\r\nx"),
                testing::AllOf(HasSubstr("400 Bad Request"), HasSubstr("Connection: close")))
        << framing;
  }
  EXPECT_THAT(exchange(start + "Content-Length: 99999999999999999999999\r\n\r\nx"),
              HasSubstr("413"));
  EXPECT_THAT(
      exchange(start +
               "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5\r\n\r\n--x\r\n"),
      HasSubstr("415"));
  // A request without any length header has no body (curl -X POST sends none), and the connection
  // stays open.
  EXPECT_THAT(exchange(start + "\r\n" + start + "Content-Length: 2\r\n\r\nab"),
              HasSubstr("\r\n\r\nab"));
}

TEST_F(HttpTest, AnswersArePackedForClientsThatUnpackThem) {
  begin();
  const std::string known = "Authorization: Bearer secret\r\n",
                    packed = exchange("GET /big HTTP/1.1\r\n" + known +
                                      "Accept-Encoding: br, gzip\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(packed, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_LT(packed.size(), 1000u);
  EXPECT_THAT(exchange("GET /big HTTP/1.1\r\n" + known + "\r\n"),
              testing::AllOf(HasSubstr("Content-Length: 100000\r\n"),
                             testing::Not(HasSubstr("Content-Encoding")),
                             testing::Not(HasSubstr("Forged"))));
  auto http = client();
  EXPECT_EQ(http.Get("/big")->body, std::string(100'000, 'x'));
  EXPECT_EQ(http.Get("/three")->body, "piecepiecepiece");
  EXPECT_EQ(http.Get("/three", {{"Accept-Encoding", "gzip"}})->body, "piecepiecepiece");
  const std::string start = "POST /echo HTTP/1.1\r\n" + known + "Content-Encoding: ";
  EXPECT_THAT(exchange(start + "gzip\r\nContent-Length: 3\r\n\r\nabc"), HasSubstr("400"));
  EXPECT_THAT(exchange(start + "br\r\nContent-Length: 3\r\n\r\nabc"), HasSubstr("415"));
}

TEST_F(HttpTest, OldClientsAndClientsThatAskBeforeTheySend) {
  begin();
  EXPECT_THAT(exchange("GET /open HTTP/1.0\r\n\r\n"),
              testing::AllOf(HasSubstr("Connection: close"), testing::EndsWith("for all")));
  const std::string known = "Authorization: Bearer secret\r\n",
                    kept = "GET /open HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_THAT(exchange(kept + "GET /items/x HTTP/1.0\r\n" + known + "\r\n"),
              testing::AllOf(HasSubstr("Connection: keep-alive"), testing::EndsWith("x none")));
  EXPECT_THAT(exchange("GET /three HTTP/1.0\r\n" + known + "\r\n"),
              testing::AllOf(testing::Not(HasSubstr("chunked")),
                             testing::EndsWith("\r\n\r\npiecepiecepiece")));
  int fd = raw();
  const std::string asks =
      "POST /echo HTTP/1.1\r\n" + known + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
  ::send(fd, asks.data(), asks.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "\r\n\r\n"), HasSubstr("100 Continue"));
  ::send(fd, "abc", 3, MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "abc"), HasSubstr("200 OK"));
  ::close(fd);
}

TEST_F(HttpTest, LongPathsAndPartsOfAnswers) {
  begin();
  for (size_t bytes : {3000, 8000})
    EXPECT_EQ(client().Get("/items/" + std::string(bytes, 'x'))->status, 414) << bytes;
  EXPECT_EQ(client().Get("/items/" + std::string(1500, 'x'))->status, 200);
  EXPECT_EQ(client().Get("/items/x?n=" + std::string(6000, 'x'))->status, 200);
  for (const char* token : {"secret", "wrong"}) {
    int fd = raw();
    std::string hello = handshake("/talk/" + std::string(60'000, 'x'), token);
    ::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    EXPECT_THAT(read_until(fd, "\r\n"), HasSubstr("414")) << token;
    ::close(fd);
  }
  for (const char* line :
       {"Range: bytes=0-1", "rAnGe:bytes=0-0,1-1", "Range: bytes=0-1\r\nRange: bytes=0-1"}) {
    const std::string answer =
        exchange(std::string("GET /open HTTP/1.1\r\nA: b\r\n") + line + "\r\n\r\n");
    EXPECT_THAT(answer, testing::AllOf(HasSubstr("200 OK"), HasSubstr("Content-Length: 7\r\n"),
                                       testing::EndsWith("for all")))
        << line;
  }
}

TEST(Utf8, OnlyWholeCharactersStay) {
  EXPECT_EQ(valid_utf8("plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const char* bad : {"\xff", "\xc0", "\xc3", "\x80", "\xed"})
    EXPECT_EQ(valid_utf8(bad), "\xef\xbf\xbd") << bad;
  EXPECT_EQ(valid_utf8("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"),
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // A surrogate is no character.
  size_t tail = 9;
  EXPECT_EQ(valid_utf8("ab\xe2\x82", &tail), "ab");
  EXPECT_EQ(tail, 2u);
  EXPECT_EQ(valid_utf8("ab\xff", &tail), "ab\xef\xbf\xbd");
  EXPECT_EQ(tail, 0u);
}

TEST(Utf8, WhatIsPrintableIsText) {
  EXPECT_EQ(printable("a\xff\x9b"
                      "b\xc3\xa4\x1b[1m\n"),
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b\xc3\xa4\\x1b[1m ");
}

}  // namespace
}  // namespace rt::http
