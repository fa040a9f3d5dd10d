// The code that runs in the cluster: functions and an actor.
#pragma once

#include <ray/api.h>

#include <string>
#include <vector>

// A user-defined value type: MSGPACK_DEFINE names the fields to serialize.
struct Order {
  int64_t id = 0;
  std::string customer;
  std::vector<double> amounts;
  MSGPACK_DEFINE(id, customer, amounts);
};

int Square(int x);
double Total(const Order& order);
// Calls tasks itself.
int64_t SumOfSquares(int n);
int Divide(int a, int b);
std::string Greet(const std::string& name);

// Sums amounts per customer.
class Ledger {
 public:
  static Ledger* Create(double start);

  double Book(const std::string& customer, double amount);
  double Balance(const std::string& customer) const;

 private:
  explicit Ledger(double start) : start_(start) {}

  const double start_;
  std::vector<std::pair<std::string, double>> balances_;
};

// Calls an actor through its handle.
double BookOrder(ray::ActorHandle<Ledger> ledger, const Order& order);
